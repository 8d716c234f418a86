"""Asks an interpreter, in a child process of its own, whether it can import and call functions."""

import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from attrs import field, frozen

import musterd

_PROBE_FILE = Path(__file__).with_name("probe.py")
_PACKAGE_FOLDER = Path(musterd.__path__[0])
_OLDEST_PYTHON = (3, 9)
_READ_BYTES = 65_536
_ANSWERS_BYTES_MAX = 64 * 1_048_576
_LAST_WORDS_BYTES = 4_096


@frozen
class Wanted:
    """A function that a kind names, and how it is to be run."""

    module: str
    function: str
    isolation: str


@frozen
class Asked:
    """Who is asked: an interpreter, what its search path starts with and, if not its own, is."""

    interpreter: str
    path: tuple[str, ...]
    own_path: tuple[str, ...] | None
    environ: Mapping[str, str] = field(repr=False)
    limit_seconds: float


@frozen
class _Answers:
    """What one child has said until it ended, and how it did."""

    version: tuple[int, ...] | None
    said: Sequence[str | None]
    ending: str


def why_each_is_broken(asked: Asked, wanted: Sequence[Wanted]) -> Mapping[Wanted, str]:
    """Gives what is wrong with each function that is not as it should be.

    One child is asked about all. A module that ends it, or takes longer than `limit_seconds` to
    import, is broken; another child is asked about the functions of the other modules.
    """
    broken: dict[Wanted, str] = {}
    rest = list(wanted)
    while rest:
        answers = _ask(asked, rest)
        if problem := _why_unusable(asked, answers):
            return broken | dict.fromkeys(rest, problem)
        broken |= {each: why for each, why in zip(rest, answers.said, strict=False) if why}
        rest = rest[len(answers.said) :]
        culprit = rest[0].module if rest else ""
        why = f"cannot import {culprit}: the interpreter {answers.ending}"
        broken |= {each: why for each in rest if each.module == culprit}
        rest = [each for each in rest if each.module != culprit]
    return broken


def _why_unusable(asked: Asked, answers: _Answers) -> str:
    if answers.version is None:
        return f"the interpreter {asked.interpreter} does not work: it {answers.ending}"
    if answers.version < _OLDEST_PYTHON:
        found, oldest = (".".join(map(str, each)) for each in (answers.version, _OLDEST_PYTHON))
        return f"the interpreter {asked.interpreter} is Python {found}, wanted {oldest} or newer"
    return ""


def _ask(asked: Asked, wanted: Sequence[Wanted]) -> _Answers:
    request = {
        "package": str(_PACKAGE_FOLDER),
        "path": asked.path,
        "own_path": asked.own_path,
        "wanted": [(each.module, each.function, each.isolation) for each in wanted],
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
            return _Answers(None, (), f"cannot be started: {error.strerror or error}")
        return _listen(child, asked.limit_seconds, errors)


def _listen(child: "subprocess.Popen[bytes]", limit_seconds: float, errors: IO[bytes]) -> _Answers:
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
        return _Answers(None, (), "does not answer as a Python does")
    ending = _ending(child.returncode) if has_ended else f"took longer than {limit_seconds:g} s"
    if not answers:
        words = _last_words(errors)
        return _Answers(None, (), f"{ending}: {words}" if words else ending)
    version, *said = answers
    return _Answers(tuple(cast(list[int], version)), cast(list[str | None], said), ending)


def _read(answers: int, into: bytearray, limit_seconds: float) -> bool:
    """Reads until the child ends; False if it is silent for longer than `limit_seconds`."""
    poll = select.poll()
    poll.register(answers, select.POLLIN)
    while poll.poll(limit_seconds * 1000):
        chunk = os.read(answers, _READ_BYTES)
        into += chunk
        if not chunk or not into.startswith(b"[") or len(into) > _ANSWERS_BYTES_MAX:
            return True
    return False


def _parsed(lines: bytes) -> list[object] | None:
    """Gives the answers; None if these are none."""
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
