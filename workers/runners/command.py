"""Command kinds: a program without a shell, its pipes, and the progress that it reports."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, cast

import attrs
import trio

from musterd.catalog.kinds import Command, WorkKind
from musterd.store.job_log import STDERR
from musterd.store.leases import Claim
from musterd.store.words import time_text
from musterd.workers.context import NOTE_LENGTH_MAX, keepable
from musterd.workers.joblog import LINE_BYTES_MAX, Head, JobLog
from musterd.workers.outcome import Assignment, Contained, Note, Outcome, log_contained
from musterd.workers.runners.process_group import ProcessGroup, Start
from musterd.workers.runners.results import (
    AnswerLimits,
    Spending,
    amounts_of,
    success,
    too_large,
)
from musterd.workers.shortage import keep_reserve, put_off

EXIT_TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
LINE_LENGTH_MAX = 500
PASSED_ON = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")
PASSED_ON_PREFIX = "LC_"
UNBUFFERED = "PYTHONUNBUFFERED"
LAUNCHER = Path(__file__).with_name("launcher.py")
MIB = 1 << 20

# How each limit of a kind is called by the kernel, and what one of it is there.
RLIMITS: Mapping[str, tuple[int, int]] = {
    "as_mb": (resource.RLIMIT_AS, MIB),
    "core_mb": (resource.RLIMIT_CORE, MIB),
    "cpu_seconds": (resource.RLIMIT_CPU, 1),
    "data_mb": (resource.RLIMIT_DATA, MIB),
    "fsize_mb": (resource.RLIMIT_FSIZE, MIB),
    "nofile": (resource.RLIMIT_NOFILE, 1),
    "nproc": (resource.RLIMIT_NPROC, 1),
    "stack_mb": (resource.RLIMIT_STACK, MIB),
}
DRAIN_SECONDS_MAX = 1.0  # for what is still in the pipes once the whole group has ended
NOTE_BYTES_MAX = 2_000  # a line of progress
COMPLAINTS_MAX = 3
SHOWN_LENGTH_MAX = 80
PERCENT_MAX = 100


@attrs.frozen
class CommandRunner:
    """Runs the commands of one worker. Keeps nothing between jobs.

    `variables` is the daemon's own environment; a command sees of it what its kind allows.
    """

    limits: AnswerLimits
    variables: Mapping[str, str]
    contained: Callable[[Contained], None] = log_contained

    async def run(self, assignment: Assignment) -> Outcome:
        """Runs the program to its end. When this returns or is cancelled, its group is no more."""
        kind, claim = assignment.kind, assignment.claim
        command = kind.behaviour
        assert isinstance(command, Command)
        try:
            keep_reserve()
            pipes = Pipes(self.limits.result_bytes_max, assignment.recorder.log)
        except OSError as error:
            return self._not_started(error, claim)
        try:
            environment = environment_of(command, claim, self.variables, kind.phase)
            group = ProcessGroup(_start(command, environment, kind.grace_seconds, pipes))
        except OSError as error:
            pipes.close()
            return self._not_started(error, claim)
        pipes.close_theirs()
        spending = Spending(assignment)
        try:
            await _see_through(group, pipes, assignment, spending)
        finally:
            pipes.close()
        return spending.ending(_outcome(group.status, pipes, kind, self.limits))

    async def close(self) -> None:
        """Has nothing to give back."""

    def _not_started(self, error: OSError, claim: Claim) -> Outcome:
        """The node has too little of something, and may soon have more: no fault of the job."""
        waiting = put_off(error, claim, self.contained)
        if waiting is not None:
            return waiting
        message = f"the program could not be started: {error.strerror}"
        return Outcome("retry", None, "not_started", message)


async def _see_through(
    group: ProcessGroup, pipes: Pipes, assignment: Assignment, spending: Spending
) -> None:
    def spend(amounts: Mapping[str, float]) -> str | None:
        fault = spending.add(amounts)
        if spending.over is not None:
            group.kill()
        return fault

    lines = ProgressLines(assignment.recorder.report, spend, pipes.complain)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipes.carry, assignment.claim.payload, lines, group.kill)
        with pipes.until_it_ended():
            async with group:
                await group.wait()


def environment_of(
    command: Command, claim: Claim, variables: Mapping[str, str], phase: str | None = None
) -> Mapping[str, str]:
    """All that the program sees: what everyone may, what its kind names, and who it works for. A
    Python program prints at once, unless its kind passes on what it is to do.
    """
    allowed = {*PASSED_ON, *command.environment}
    chosen = {
        name: value
        for name, value in variables.items()
        if name in allowed or name.startswith(PASSED_ON_PREFIX)
    }
    slot = time_text(claim.scheduled_for)
    fence = {
        "MUSTERD_JOB_ID": str(claim.id),
        "MUSTERD_ATTEMPT": str(claim.attempt),
        "MUSTERD_CLAIM_TOKEN": str(claim.token),
        **({} if phase is None else {"MUSTERD_PHASE": phase}),
        **({} if claim.schedule is None else {"MUSTERD_SCHEDULE": claim.schedule}),
        **({} if slot is None else {"MUSTERD_SCHEDULED_FOR": slot}),
        **({} if claim.traceparent is None else {"TRACEPARENT": claim.traceparent}),
    }
    return {UNBUFFERED: "1", **chosen, **fence}


def _start(
    command: Command, environment: Mapping[str, str], grace_seconds: float, pipes: Pipes
) -> Start:
    spec = {
        "parent": os.getpid(),
        "progress": pipes.progress,
        "lc_ctype": environment.get("LC_CTYPE"),
        "cwd": str(command.cwd) if command.cwd is not None else None,
        "umask": command.umask,
        "rlimits": [_rlimit(name, most) for name, most in command.rlimits.items()],
    }
    launcher = (sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(spec))
    return Start(
        argv=(*launcher, *command.argv),
        environment=environment,
        grace_seconds=grace_seconds,
        stdin=pipes.stdin,
        stdout=pipes.stdout,
        stderr=pipes.stderr,
        pass_fds=(pipes.progress,),
        user=command.user,
    )


def _rlimit(name: str, most: int) -> tuple[int, int]:
    number, unit = RLIMITS[name]
    return number, most * unit


def _outcome(status: int | None, pipes: Pipes, kind: WorkKind, limits: AnswerLimits) -> Outcome:
    if pipes.result.overflowed:
        return too_large("stdout", f"more than {pipes.result.bytes_max} bytes", limits)
    if status == 0:
        return success(bytes(pipes.result.kept), "stdout", limits)
    if status is None:
        message = "the program did not end when it was killed"
        return Outcome("failure", None, "signal", message, kind.retryable)
    last_line = pipes.last_words.line()
    if status < 0:
        message = _with(f"killed by signal {-status} ({_name_of(-status)})", last_line)
        return Outcome("failure", None, "signal", message, kind.retryable)
    message = _with(f"exited with status {status}", last_line)
    command = kind.behaviour
    assert isinstance(command, Command)
    if status in command.snooze_on_exit:
        return Outcome("snooze", message=message, delay_seconds=command.snooze_seconds)
    if status == EXIT_TRY_AGAIN or status in command.retry_on_exit:
        return Outcome("retry", None, "exit", message)
    return Outcome("failure", None, "exit", message, kind.retryable)


def _with(message: str, last_line: str) -> str:
    return f"{message}: {last_line}" if last_line else message


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return "unnamed"


class Writes(Protocol):
    """Takes what arrives."""

    def add(self, chunk: bytes | bytearray) -> None: ...


class Pipes:
    """Ours are ends that Trio waits for; the child's are plain files, closed once it has them.

    Reads on while the command is told to stop, so that what it writes then can't block it.
    """

    def __init__(self, result_bytes_max: int, log: JobLog) -> None:
        """Raises OSError if there are too few file descriptors."""
        self.result = Head(result_bytes_max)
        self.last_words = LastWords(log)
        self._log = log
        self._ours: list[trio.lowlevel.FdStream] = []
        self._theirs: list[int] = []
        self._reading = trio.CancelScope(shield=True)
        try:
            self.stdin = self._open(ours_writes=True)
            self.stdout, self.stderr, self.progress = (self._open() for _ in range(3))
        except OSError:
            self.close()
            raise

    def _open(self, *, ours_writes: bool = False) -> int:
        reads, writes = os.pipe()
        ours, theirs = (writes, reads) if ours_writes else (reads, writes)
        self._theirs.append(theirs)
        self._ours.append(trio.lowlevel.FdStream(ours))
        return theirs

    def close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def close(self) -> None:
        self.close_theirs()
        for stream in self._ours:
            stream.close()

    @contextmanager
    def until_it_ended(self) -> Generator[None]:
        """After the block the group is no more: what is in the pipes is read, then no more."""
        try:
            yield
        finally:
            self._reading.deadline = trio.current_time() + DRAIN_SECONDS_MAX

    async def carry(self, payload: str, lines: ProgressLines, on_flood: Callable[[], None]) -> None:
        """Feeds stdin, reads the rest to their ends. `on_flood`: stdout is more than a result."""
        stdin, stdout, stderr, progress = self._ours
        with self._reading:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_read, stderr, self.last_words)
                nursery.start_soon(_read, progress, lines)
                nursery.start_soon(_feed, stdin, payload.encode())
                await self._read_result(stdout, on_flood)
                # A program that has closed stdout may live on and still tell of its progress.
        lines.end()

    async def _read_result(
        self, stdout: trio.lowlevel.FdStream, on_flood: Callable[[], None]
    ) -> None:
        is_object: bool | None = None  # not known yet
        async for chunk in stdout:
            self.result.add(chunk)
            if is_object is None and (begin := self.result.kept.lstrip()):
                is_object = begin.startswith(b"{")
            if not is_object:
                self._log.add(chunk)
            if self.result.overflowed:
                on_flood()
                return

    def complain(self, text: str) -> None:
        """A line of ours in the command's log."""
        self._log.say(text)


class LastWords:
    """What a program says on its stderr goes to the log; the end of it is kept for its error."""

    def __init__(self, log: JobLog) -> None:
        self._log = log
        self._end = b""

    def add(self, chunk: bytes | bytearray) -> None:
        self._log.add(chunk, STDERR)
        self._end = (self._end + chunk)[-LINE_BYTES_MAX:]

    def line(self) -> str:
        """The last line that is not blank."""
        lines = self._end.decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return last[:LINE_LENGTH_MAX]


async def _read(stream: trio.lowlevel.FdStream, into: Writes) -> None:
    async for chunk in stream:
        into.add(chunk)


async def _feed(stdin: trio.lowlevel.FdStream, payload: bytes) -> None:
    try:
        await stdin.send_all(payload)
    except trio.BrokenResourceError:
        pass  # it need not read what it is given
    finally:
        stdin.close()


@attrs.define
class ProgressLines:
    """Takes what arrives, tells the latest note of each arrival and the sum of what was spent;
    complains of what is neither. However much arrives, each is told once.
    """

    report: Callable[[Note], None]
    spend: Callable[[Mapping[str, float]], str | None]  # gives why some of it is not counted
    complain: Callable[[str], None]
    _rest: bytes = attrs.field(default=b"", init=False)
    _complaints: int = attrs.field(default=0, init=False)

    def add(self, chunk: bytes | bytearray) -> None:
        *lines, self._rest = (self._rest + bytes(chunk)).split(b"\n")
        if len(self._rest) > NOTE_BYTES_MAX:
            lines, self._rest = [*lines, self._rest], b""
        self._take(lines)

    def end(self) -> None:
        """Takes a last line that had no end."""
        self._take([self._rest])

    def _take(self, lines: list[bytes]) -> None:
        latest: Note | None = None
        sums: dict[str, float] = {}
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if not text:
                continue
            note, spent = said_by(text) if len(line) <= NOTE_BYTES_MAX else (None, None)
            latest = note or latest
            if spent is not None:
                for name, amount in spent.items():
                    sums[name] = sums.get(name, 0) + amount
            elif note is None:
                wanted = (
                    'a percentage from 0 to 100, {"percent": ..., "note": ...} or {"spent": ...}'
                )
                self._refuse(f"{text[:SHOWN_LENGTH_MAX]!r}, wanted {wanted}")
        if latest is not None:
            self.report(latest)
        if sums and (fault := self.spend(sums)) is not None:
            self._refuse(f"some of what was spent, {fault}")

    def _refuse(self, what: str) -> None:
        self._complaints += 1
        if self._complaints <= COMPLAINTS_MAX:
            self.complain(f"ignored on fd 3: {what}")


def said_by(line: str) -> tuple[Note | None, Mapping[str, float] | None]:
    """The note in the line, and what `{"spent": {"tokens": 120}}` says, where they are there."""
    if line.startswith("{"):
        value = _object(line)
        return _note_in(value), amounts_of(value.get("spent"))
    percent, _, note = line.partition(" ")
    try:
        return _note(float(percent.removesuffix("%")), note), None
    except ValueError:
        return None, None


def _object(line: str) -> Mapping[str, object]:
    """Empty, if the line holds none: nothing is said by that either."""
    try:
        return cast("dict[str, object]", json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _note_in(value: Mapping[str, object]) -> Note | None:
    percent, note = value.get("percent"), value.get("note")
    if isinstance(percent, bool) or not isinstance(percent, int | float):
        return None
    return _note(percent, note) if note is None or isinstance(note, str) else None


def _note(percent: float, note: str | None) -> Note | None:
    if not math.isfinite(percent) or not 0 <= percent <= PERCENT_MAX:
        return None
    words = keepable(" ".join((note or "").replace("\0", "").split()))
    return Note(float(percent), words[:NOTE_LENGTH_MAX] or None)
