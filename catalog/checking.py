"""Whether the kinds can run on this machine: functions, interpreters, programs, files."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from musterd.catalog.kinds import Catalog, Command, HttpCall, Python, WorkKind
from musterd.catalog.probing import Asked, Wanted, why_each_is_broken
from musterd.catalog.shapes import header_value
from musterd.config.credentials import read_secret
from musterd.config.faults import ConfigError, Fault, Unfit
from musterd.config.settings import Settings
from musterd.config.toml_text import key_text


@frozen
class Surroundings:
    """What kinds are checked against: the settings' interpreter, and the environments.

    `limit_seconds` is how long one module may take to import.
    """

    python: str
    limit_seconds: float
    environ: Mapping[str, str] = field(repr=False)  # the daemon's own
    children_environ: Mapping[str, str] = field(repr=False)  # what its Python children see of it


def surroundings_of(
    settings: Settings, environ: Mapping[str, str], children_environ: Mapping[str, str]
) -> Surroundings:
    python, limit_seconds = settings.catalog.python, settings.executor.start_timeout_seconds
    return Surroundings(python, limit_seconds, environ, children_environ)


def find_broken(catalog: Catalog, around: Surroundings) -> Catalog:
    """Gives the catalog with each kind's `broken` as it is here: a reason, or None.

    Looks and asks, runs no job. Modules are imported, but never in this process.
    """
    broken = dict(_broken_functions(catalog.values(), around))
    for kind in catalog.values():
        match kind.behaviour:
            case Command() as command:
                why = _why_not_runnable(command, around.environ)
                broken |= {kind.name: _reason(kind, *why)} if why else {}
            case HttpCall() as call:
                why = _why_not_callable(call)
                broken |= {kind.name: _reason(kind, *why)} if why else {}
            case _:
                pass
    return Catalog(evolve(kind, broken=broken.get(kind.name)) for kind in catalog.values())


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Gives the path of a program: `name` itself if it is one, else as PATH has it."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def _reason(kind: WorkKind, key: str, found: str) -> str:
    return str(Fault(kind.source, key=key_text(("kinds", kind.name, *key.split("."))), found=found))


def _broken_functions(kinds: Iterable[WorkKind], around: Surroundings) -> Iterator[tuple[str, str]]:
    groups: dict[tuple[bool, tuple[Path, ...]], list[tuple[WorkKind, Wanted]]] = {}
    for kind in kinds:
        if isinstance(does := kind.behaviour, Python):
            wanted = Wanted(does.module, does.function, does.isolation)
            group = (does.isolation == "process", does.search_path)
            groups.setdefault(group, []).append((kind, wanted))
    for (in_child, search_path), members in groups.items():
        asked = _whom_to_ask(in_child, search_path, around)
        wanted_once = list(dict.fromkeys(wanted for _kind, wanted in members))
        if isinstance(asked, str):
            broken: Mapping[Wanted, str] = dict.fromkeys(wanted_once, asked)
        else:
            broken = why_each_is_broken(asked, wanted_once)
        for kind, wanted in members:
            if wanted in broken:
                yield kind.name, _reason(kind, "python", broken[wanted])


def _whom_to_ask(
    in_child: bool, search_path: tuple[Path, ...], around: Surroundings
) -> Asked | str:
    """Gives the interpreter that will run the function, or why there is none."""
    path = tuple(map(str, search_path))
    if not in_child:
        own_path = tuple(each or str(Path.cwd()) for each in sys.path)
        return Asked(sys.executable, path, own_path, around.environ, around.limit_seconds)
    interpreter = find_program(around.python or sys.executable, around.environ)
    if interpreter is None:
        return f"there is no interpreter {around.python} ([catalog] python)"
    return Asked(interpreter, path, None, around.children_environ, around.limit_seconds)


def _why_not_runnable(command: Command, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Gives the key to blame and what is wrong; None if the program can be started."""
    program = command.argv[0]
    if find_program(program, environ) is None:
        return "command", _why_no_program(program)
    if command.cwd is not None and not command.cwd.is_dir():
        what = "is no folder" if command.cwd.exists() else "does not exist"
        return "cwd", f"{command.cwd} {what}"
    if command.cwd is not None and not os.access(command.cwd, os.X_OK):
        return "cwd", f"{command.cwd} may not be entered"
    return None


def _why_no_program(program: str) -> str:
    if not program.startswith("/"):
        return f"there is no program {program} on PATH"
    path = Path(program)
    if path.is_dir():
        return f"{program} is a folder"
    return f"{program} is not executable" if path.exists() else f"there is no program {program}"


def _why_not_callable(call: HttpCall) -> tuple[str, str] | None:
    for name, file in call.header_files.items():
        try:
            header_value(read_secret(f"http.header_files.{name}", str(file), {}))
        except ConfigError as error:
            return f"http.header_files.{name}", f"{file}: {error.faults[0].found}"
        except Unfit as unfit:
            return f"http.header_files.{name}", f"{file} does not hold {unfit.wanted}"
    return None
