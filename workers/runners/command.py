"""Command kinds: a program for each job. Payload on stdin, result on stdout, progress on fd 3."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
import trio

from musterd.catalog.kinds import Command, WorkKind
from musterd.store.leases import Claim
from musterd.workers.outcome import Outcome
from musterd.workers.runners.command_pipes import Pipes
from musterd.workers.runners.process_group import ProcessGroup, Start
from musterd.workers.runners.results import AnswerLimits, success, too_large
from musterd.workers.running import Assignment

EXIT_TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
LINE_LENGTH_MAX = 500
PASSED_ON = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")
PASSED_ON_PREFIX = "LC_"
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


@attrs.frozen
class CommandRunner:
    """Runs the commands of one worker. Keeps nothing between jobs.

    `variables` is the daemon's own environment; a command sees of it what its kind allows.
    """

    limits: AnswerLimits
    variables: Mapping[str, str]

    async def run(self, assignment: Assignment) -> Outcome:
        """Runs the program to its end. When this returns or is cancelled, its group is no more."""
        kind, claim = assignment.kind, assignment.claim
        command = kind.behaviour
        assert isinstance(command, Command)
        try:
            pipes = Pipes(self.limits.result_bytes_max, self.limits.log_bytes_max)
        except OSError as error:
            return _not_started(error)
        try:
            environment = environment_of(command, claim, self.variables, kind.phase)
            group = ProcessGroup(_start(command, environment, kind.grace_seconds, pipes))
        except OSError as error:
            pipes.close()
            return _not_started(error)
        pipes.close_theirs()
        try:
            await _see_through(group, pipes, assignment)
        finally:
            pipes.close()
            assignment.traces.log = pipes.log.text()
        return _outcome(group.status, pipes, kind, self.limits)

    async def close(self) -> None:
        """Has nothing to give back."""


async def _see_through(group: ProcessGroup, pipes: Pipes, assignment: Assignment) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipes.carry, assignment.claim.payload, assignment.tell, group.kill)
        with pipes.until_it_ended():
            async with group:
                await group.wait()


def environment_of(
    command: Command, claim: Claim, variables: Mapping[str, str], phase: str | None = None
) -> Mapping[str, str]:
    """All that the program sees: what everyone may, what its kind names, and who it works for."""
    allowed = {*PASSED_ON, *command.environment}
    chosen = {
        name: value
        for name, value in variables.items()
        if name in allowed or name.startswith(PASSED_ON_PREFIX)
    }
    fence = {
        "MUSTERD_JOB_ID": str(claim.id),
        "MUSTERD_ATTEMPT": str(claim.attempt),
        "MUSTERD_CLAIM_TOKEN": str(claim.token),
        **({} if phase is None else {"MUSTERD_PHASE": phase}),
    }
    return {**chosen, **fence}


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
    )


def _rlimit(name: str, most: int) -> tuple[int, int]:
    number, unit = RLIMITS[name]
    return number, most * unit


def _not_started(error: OSError) -> Outcome:
    """The node has too little of something, and may soon have more: no fault of the job."""
    message = f"the program could not be started: {error.strerror}"
    return Outcome("retry", None, "not_started", message)


def _outcome(status: int | None, pipes: Pipes, kind: WorkKind, limits: AnswerLimits) -> Outcome:
    return _ending(status, pipes, kind, limits)._replace(log=pipes.log.text())


def _ending(status: int | None, pipes: Pipes, kind: WorkKind, limits: AnswerLimits) -> Outcome:
    if pipes.result.overflowed:
        return too_large("stdout", "more", limits)
    if status == 0:
        return success(bytes(pipes.result.kept), "stdout", limits)
    if status is None:
        message = "the program did not end when it was killed"
        return Outcome("failure", None, "signal", message, kind.retryable)
    last_line = pipes.log.last_line()[:LINE_LENGTH_MAX]
    if status < 0:
        message = _with(f"killed by signal {-status} ({_name_of(-status)})", last_line)
        return Outcome("failure", None, "signal", message, kind.retryable)
    message = _with(f"exited with status {status}", last_line)
    command = kind.behaviour
    assert isinstance(command, Command)
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
