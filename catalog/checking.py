"""Whether kinds can run on this machine: functions, interpreters, programs, files."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from attrs import evolve, field, frozen

import musterd
from musterd.catalog.accounts import account_of, why_no_way, why_not_as
from musterd.catalog.kinds import (
    Behaviour,
    Catalog,
    Command,
    HttpCall,
    Pipeline,
    Python,
    WorkKind,
)
from musterd.catalog.tables import header_value
from musterd.config.credentials import read_secret
from musterd.config.faults import ConfigError, Fault, Unfit
from musterd.config.load import module_folders
from musterd.config.retention import function_of
from musterd.config.settings import Settings
from musterd.config.toml_text import key_text

PartName: TypeAlias = tuple[str, str | None]  # (kind, phase)


@frozen
class Surroundings:
    """What kinds are checked against. `limit_seconds` is how long a module may take to import."""

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
    """The catalog with each kind's `broken` set for this machine: a reason, or None. Runs no job;
    imports modules, but never in this process.
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
        why = why or _why_not_as_user(part.behaviour, around.python)
        broken |= {_name_of(part): _reason(part, *why)} if why else {}
    return Catalog(_with_reasons(kind, broken) for kind in catalog.values())


def _with_reasons(kind: WorkKind, broken: Mapping[PartName, str]) -> WorkKind:
    """A kind is broken if one of its phases is; the first one's reason counts."""
    if not isinstance(kind.behaviour, Pipeline):
        return evolve(kind, broken=broken.get(_name_of(kind)))
    phases = tuple(
        evolve(phase, kind=evolve(phase.kind, broken=broken.get(_name_of(phase.kind))))
        for phase in kind.behaviour.phases
    )
    reasons = (phase.kind.broken for phase in phases if phase.kind.broken is not None)
    return evolve(kind, behaviour=Pipeline(phases), broken=next(reasons, None))


def _name_of(part: WorkKind) -> PartName:
    return part.name, part.phase


def broken_hooks(settings: Settings, around: Surroundings) -> Mapping[str, str]:
    """The broken functions of `[retention]`, and why, as far as that shows without a call."""
    hooks = {"on_stale": settings.retention.on_stale, "on_delete": settings.retention.on_delete}
    wanted = {
        f"retention.{key}": Wanted(*function, "process")
        for key, hook in hooks.items()
        if (function := function_of(hook)) is not None
    }
    if not wanted:
        return {}
    asked = whom_to_ask(True, module_folders(settings.catalog, around.environ), around)
    if isinstance(asked, str):
        return dict.fromkeys(wanted, asked)
    broken = why_each_is_broken(asked, list(dict.fromkeys(wanted.values())))
    return {key: broken[each] for key, each in wanted.items() if each in broken}


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """The path of a program: `name` itself if it is one, else looked up in PATH."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def _reason(part: WorkKind, key: str, found: str) -> str:
    where = ("kinds", part.name) if part.phase is None else ("kinds", part.name, "phases")
    named = found if part.phase is None else f"phase {part.phase}: {found}"
    return str(Fault(part.source, key=key_text((*where, *key.split("."))), found=named))


def _broken_functions(
    kinds: Iterable[WorkKind], around: Surroundings
) -> Iterator[tuple[PartName, str]]:
    groups: dict[tuple[bool, tuple[Path, ...]], list[tuple[WorkKind, Wanted]]] = {}
    for kind in kinds:
        if isinstance(does := kind.behaviour, Python):
            wanted = Wanted(does.module, does.function, does.isolation)
            group = (does.isolation == "process", does.search_path)
            groups.setdefault(group, []).append((kind, wanted))
    for (in_child, search_path), members in groups.items():
        asked = whom_to_ask(in_child, search_path, around)
        wanted_once = list(dict.fromkeys(wanted for _kind, wanted in members))
        if isinstance(asked, str):
            broken: Mapping[Wanted, str] = dict.fromkeys(wanted_once, asked)
        else:
            broken = why_each_is_broken(asked, wanted_once)
        for kind, wanted in members:
            if wanted in broken:
                yield _name_of(kind), _reason(kind, "python", broken[wanted])


def whom_to_ask(
    in_child: bool, search_path: tuple[Path, ...], around: Surroundings
) -> ProbeTarget | str:
    """The interpreter that would run the function, or why there is none."""
    path = tuple(map(str, search_path))
    if not in_child:
        own_path = tuple(each or str(Path.cwd()) for each in sys.path)
        return ProbeTarget(sys.executable, path, own_path, around.environ, around.limit_seconds)
    interpreter = find_program(around.python or sys.executable, around.environ)
    if interpreter is None:
        return f"there is no interpreter {around.python} ([catalog] python)"
    return ProbeTarget(interpreter, path, None, around.children_environ, around.limit_seconds)


def _why_not_as_user(behaviour: Behaviour, python: str) -> tuple[str, str] | None:
    if not isinstance(behaviour, Command | Python) or not behaviour.user:
        return None
    if isinstance(behaviour, Python) and behaviour.isolation != "process":
        found = f'isolation "{behaviour.isolation}" is code of the daemon\'s own process'
        return "user", f"{found}: only a child process can run as {behaviour.user}"
    why = why_not_as(behaviour.user)
    if why is None:  # it begins as an interpreter, a program too
        own = python if isinstance(behaviour, Python) and python else sys.executable
        with suppress(OSError):  # that it is not there is said elsewhere
            why = why_no_way(account_of(behaviour.user), own)
    return None if why is None else ("user", why)


def _why_not_runnable(command: Command, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The key to blame and the reason; None if the program can be started."""
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


_PROBE_FILE = Path(__file__).with_name("probe.py")
_PACKAGE_FOLDER = Path(musterd.__path__[0])
_OLDEST_PYTHON = (3, 9)
_READ_BYTES = 65_536
_ANSWERS_BYTES_MAX = 64 * 1_048_576
_LAST_WORDS_BYTES = 4_096


@frozen
class Wanted:
    """A function that a kind names, and its isolation."""

    module: str
    function: str
    isolation: str


@frozen
class ProbeTarget:
    """An interpreter to ask; its search path is `path`, then `own_path` if given, else its own."""

    interpreter: str
    path: tuple[str, ...]
    own_path: tuple[str, ...] | None
    environ: Mapping[str, str] = field(repr=False)
    limit_seconds: float


@frozen
class Answers:
    """What a child answered before it ended, and how it ended."""

    version: tuple[int, ...] | None
    said: Sequence[Any]
    ending: str


def why_each_is_broken(asked: ProbeTarget, wanted: Sequence[Wanted]) -> Mapping[Wanted, str]:
    """The broken functions and why. One child checks them all; after a module that ends it or
    exceeds `limit_seconds`, another child checks the functions of the others.
    """
    broken: dict[Wanted, str] = {}
    rest = list(wanted)
    while rest:
        answers = ask(asked, rest)
        if problem := why_unusable(asked, answers):
            return broken | dict.fromkeys(rest, problem)
        broken |= {each: why for each, why in zip(rest, answers.said, strict=False) if why}
        rest = rest[len(answers.said) :]
        culprit = rest[0].module if rest else ""
        why = f"cannot import {culprit}: the interpreter {answers.ending}"
        broken |= {each: why for each in rest if each.module == culprit}
        rest = [each for each in rest if each.module != culprit]
    return broken


def why_unusable(asked: ProbeTarget, answers: Answers) -> str:
    if answers.version is None:
        return f"the interpreter {asked.interpreter} does not work: it {answers.ending}"
    if answers.version < _OLDEST_PYTHON:
        found, oldest = (".".join(map(str, each)) for each in (answers.version, _OLDEST_PYTHON))
        return f"the interpreter {asked.interpreter} is Python {found}, wanted {oldest} or newer"
    return ""


def ask(asked: ProbeTarget, wanted: Sequence[Wanted] = (), modules: Sequence[str] = ()) -> Answers:
    request = {
        "package": str(_PACKAGE_FOLDER),
        "path": asked.path,
        "own_path": asked.own_path,
        "wanted": [(each.module, each.function, each.isolation) for each in wanted],
        "modules": modules,
    }
    # Files, not pipes: however much stands in them, nobody waits for the other side.
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as errors:
        question.write(json.dumps(request).encode())
        question.seek(0)
        try:
            child = subprocess.Popen(
                [asked.interpreter, "-I", "-B", str(_PROBE_FILE)],
                stdin=question,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(asked.environ),
                start_new_session=True,
            )
        except OSError as error:
            return Answers(None, (), f"cannot be started: {error.strerror or error}")
        return _listen(child, asked.limit_seconds, errors)


def _listen(child: subprocess.Popen[bytes], limit_seconds: float, errors: IO[bytes]) -> Answers:
    with child, cast(IO[bytes], child.stdout) as stdout:
        lines = bytearray()
        try:
            has_ended = _read(stdout.fileno(), lines, limit_seconds)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)  # and with it what the modules have started
            child.wait()
    answers = _parsed(bytes(lines))
    if answers is None:
        return Answers(None, (), "does not answer as a Python does")
    ending = _ending(child.returncode) if has_ended else f"took longer than {limit_seconds:g} s"
    if not answers:
        words = _last_words(errors)
        return Answers(None, (), f"{ending}: {words}" if words else ending)
    version, *said = answers
    return Answers(tuple(cast(list[int], version)), said, ending)


def _read(answers: int, into: bytearray, limit_seconds: float) -> bool:
    """Reads until the child ends; False if it stays silent for longer than `limit_seconds`."""
    poll = select.poll()
    poll.register(answers, select.POLLIN)
    while poll.poll(limit_seconds * 1000):
        chunk = os.read(answers, _READ_BYTES)
        into += chunk
        if not chunk or not into.startswith(b"[") or len(into) > _ANSWERS_BYTES_MAX:
            return True
    return False


def _parsed(lines: bytes) -> list[object] | None:
    """The answers; None if the output is something else."""
    try:
        return [json.loads(line) for line in lines.splitlines()]
    except ValueError:
        return None


def _ending(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {abs(status)}"


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
    words = errors.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(words) if line.strip()), "")
