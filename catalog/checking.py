"""Whether the kinds can run on this machine: functions, interpreters, programs, files."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from attrs import evolve, field, frozen

from musterd.catalog.kinds import Catalog, Command, HttpCall, Pipeline, Python, WorkKind
from musterd.catalog.probing import Asked, Wanted, why_each_is_broken
from musterd.catalog.shapes import header_value
from musterd.config.credentials import read_secret
from musterd.config.faults import ConfigError, Fault, Unfit
from musterd.config.retention import function_of
from musterd.config.settings import Settings
from musterd.config.toml_text import key_text

Place: TypeAlias = tuple[str, str | None]  # (kind, phase)


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
    parts = [part for kind in catalog.values() for part in kind.parts]
    broken = dict(_broken_functions(parts, around))
    for part in parts:
        match part.behaviour:
            case Command() as command:
                why = _why_not_runnable(command, around.environ)
            case HttpCall() as call:
                why = _why_not_callable(call)
            case _:
                why = None
        broken |= {_place(part): _reason(part, *why)} if why else {}
    return Catalog(_with_reasons(kind, broken) for kind in catalog.values())


def _with_reasons(kind: WorkKind, broken: Mapping[Place, str]) -> WorkKind:
    """A kind is broken if one of its phases is, for the reason of the first."""
    if not isinstance(kind.behaviour, Pipeline):
        return evolve(kind, broken=broken.get(_place(kind)))
    phases = tuple(
        evolve(phase, kind=evolve(phase.kind, broken=broken.get(_place(phase.kind))))
        for phase in kind.behaviour.phases
    )
    reasons = (phase.kind.broken for phase in phases if phase.kind.broken is not None)
    return evolve(kind, behaviour=Pipeline(phases), broken=next(reasons, None))


def _place(part: WorkKind) -> Place:
    return part.name, part.phase


def broken_hooks(settings: Settings, around: Surroundings) -> Mapping[str, str]:
    """Gives what is wrong with the functions that `[retention]` names, by key, as far as it can be
    told without calling them.
    """
    hooks = {"on_stale": settings.retention.on_stale, "on_delete": settings.retention.on_delete}
    wanted = {
        f"retention.{key}": Wanted(*function, "process")
        for key, hook in hooks.items()
        if (function := function_of(hook)) is not None
    }
    if not wanted:
        return {}
    asked = _whom_to_ask(True, settings.catalog.python_path, around)
    if isinstance(asked, str):
        return dict.fromkeys(wanted, asked)
    broken = why_each_is_broken(asked, list(dict.fromkeys(wanted.values())))
    return {key: broken[each] for key, each in wanted.items() if each in broken}


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Gives the path of a program: `name` itself if it is one, else as PATH has it."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def _reason(part: WorkKind, key: str, found: str) -> str:
    where = ("kinds", part.name) if part.phase is None else ("kinds", part.name, "phases")
    named = found if part.phase is None else f"phase {part.phase}: {found}"
    return str(Fault(part.source, key=key_text((*where, *key.split("."))), found=named))


def _broken_functions(
    kinds: Iterable[WorkKind], around: Surroundings
) -> Iterator[tuple[Place, str]]:
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
                yield _place(kind), _reason(kind, "python", broken[wanted])


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
