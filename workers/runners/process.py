"""Python kinds with `isolation = "process"`: the daemon's end of a child that runs handlers, which
its worker keeps from job to job.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import trio

from musterd.catalog.kinds import Python, WorkKind
from musterd.store.leases import Claim
from musterd.workers.context import Ending, PhaseFacts
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import Assignment, Note, Outcome
from musterd.workers.runners.process_group import ProcessGroup, Start
from musterd.workers.runners.results import outcome_of
from musterd.workers.toolbox import Tools

PROGRAM = Path(__file__).with_name("child.py")
_scan = json.JSONDecoder().raw_decode  # quicker than json.loads, which looks for blanks around
CHUNK_BYTES = 8_192  # most messages are far smaller, and a large buffer costs time
OUTPUT_CHUNK_BYTES = 65_536


class ChildDied(Exception):
    """The child ended, or broke its word, before its job was done. The message says how."""


class Ended(NamedTuple):
    """A job's end, and the memory that the child holds after it."""

    ending: Ending
    memory_bytes: int


class Executor:
    """One child. `start` it before use, `stop` it in any case; one job at a time.

    Both its socket and the pipe of its prints are read here, so a child that prints much is never
    held up, and what it prints never gets into what it says.
    """

    def __init__(self, behaviour: Python, tools: Tools, grace_seconds: float) -> None:
        """Starts the process. Raises OSError where that fails."""
        self.jobs = 0
        self._kind: WorkKind | None = None  # of the latest job
        self._kind_text = ""
        self._bytes_max = tools.max_frame_bytes
        self._received = bytearray()
        self._closing = ExitStack()
        with ExitStack() as undo:
            undo.callback(self._closing.close)
            self._open(behaviour, tools, grace_seconds)
            undo.callback(self._group.kill)
            self._watch()
            undo.pop_all()

    def _open(self, behaviour: Python, tools: Tools, grace_seconds: float) -> None:
        with ExitStack() as theirs:
            self._socket, their_socket = socket.socketpair()
            self._closing.callback(self._socket.close)
            theirs.callback(their_socket.close)
            self._output, their_output = os.pipe()
            self._closing.callback(os.close, self._output)
            theirs.callback(os.close, their_output)
            self._socket.setblocking(False)
            os.set_blocking(self._output, False)
            self._group = ProcessGroup(
                Start(
                    _command_line(behaviour, tools, their_socket.fileno()),
                    tools.environment,
                    grace_seconds,
                    stdout=their_output,
                    stderr=their_output,
                    pass_fds=(their_socket.fileno(),),
                    umask=0o077,
                )
            )

    def _watch(self) -> None:
        """Makes one file to wait for out of three: socket, prints, and the end of the process."""
        self._events = self._closing.enter_context(selectors.DefaultSelector())
        self._events.register(self._socket, selectors.EVENT_READ)
        self._events.register(self._output, selectors.EVENT_READ)
        self._pidfd = os.pidfd_open(self._group.pid) if hasattr(os, "pidfd_open") else None
        if self._pidfd is not None:
            self._closing.callback(os.close, self._pidfd)
            self._events.register(self._pidfd, selectors.EVENT_READ)

    async def hello(self, log: JobLog) -> None:
        """Returns once it is ready for jobs. Raises ChildDied if it ends instead."""
        head, _body = await self._receive(log)
        if head.get("is") != "ready":
            raise ChildDied(f"its child process answered {head!r:.200} instead of being ready")

    async def do(self, assignment: Assignment, log: JobLog) -> Ended:
        """Runs the job. Raises ChildDied if the child does not live to its end."""
        self.jobs += 1
        await self._send(self._job_head(assignment), assignment.claim.payload)
        while True:
            head, body = await self._receive(log)
            what = head.pop("is", None)
            if what == "end":
                return _ended(head, body)
            if what == "note":
                _pass_note_on(head, assignment)
            elif what == "remaining":
                seconds = assignment.remaining_seconds()
                await self._send(json.dumps({"is": what, "seconds": seconds}), "")
            elif what == "phase" and assignment.phase is not None:
                await self._send(json.dumps({"is": what}), _phase_result(head, assignment.phase))
            else:
                raise ChildDied(f"its child process sent {what!r:.100}, which means nothing")

    def _job_head(self, assignment: Assignment) -> str:
        claim, kind = assignment.claim, assignment.kind
        if kind is not self._kind:  # else its text is at hand: most jobs are like the one before
            self._kind, self._kind_text = kind, _kind_text(kind)
        spent = json.dumps(json.loads(claim.spent)) if claim.spent else "{}"
        what = f'[{claim.id}, "{claim.token}", {claim.attempt}]'
        phase = "" if assignment.phase is None else _phase_text(assignment.phase)
        slot = "" if claim.schedule is None else _slot_text(claim)
        return f'{{{self._kind_text}, "claim": {what}, "spent": {spent}{phase}{slot}}}'

    async def stop(self, grace_seconds: float, log: JobLog | None) -> None:
        """Ends it and all that it has started: TERM, the grace, KILL. Bounded, not to be cancelled,
        safe to repeat. What it has printed till then goes to `log`.
        """
        self._group.grace_seconds = grace_seconds
        try:
            await self._group.stop()
            if log is not None:
                self._drain_output(log)
        finally:
            self._closing.close()

    @property
    def status(self) -> int | None:
        """After `stop`: its exit status; negative = the signal that ended it."""
        return self._group.status

    async def _send(self, head: str, body: str) -> None:
        data = f"{head}\n{body}".encode()
        rest: bytes | memoryview = len(data).to_bytes(4, "big") + data
        while rest:
            try:
                sent = self._socket.send(rest)
                rest = memoryview(rest)[sent:]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
            except OSError:
                return  # it has ended: reading tells

    async def _receive(self, log: JobLog) -> tuple[dict[str, Any], str]:
        while (message := self._next_message()) is None:
            await trio.lowlevel.wait_readable(self._events)
            self._read_socket()
            self._drain_output(log)  # after it: whatever was printed before a message is there
        return message

    def _next_message(self) -> tuple[dict[str, Any], str] | None:
        received = self._received
        length = int.from_bytes(received[:4], "big")
        if length > self._bytes_max:
            raise ChildDied(f"its child process sent {length} bytes, more than {self._bytes_max}")
        if len(received) < 4 + length or not length:
            return None
        head, _, body = bytes(received[4 : 4 + length]).partition(b"\n")
        del received[: 4 + length]
        try:
            return _scan(head.decode())[0], body.decode("utf-8", "surrogatepass")
        except ValueError:
            raise ChildDied("its child process sent what is no message") from None

    def _read_socket(self) -> None:
        try:
            chunk = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            if self._has_ended():
                # A grandchild may hold the socket open, but nobody is there to answer.
                raise ChildDied("its child process has ended") from None
            return
        except OSError as error:
            raise ChildDied(f"its child process is gone ({error.strerror})") from None
        if not chunk:
            raise ChildDied("its child process has ended")
        self._received += chunk

    def _has_ended(self) -> bool:
        return self._pidfd is not None and any(
            key.fd == self._pidfd for key, _ in self._events.select(0)
        )

    def _drain_output(self, log: JobLog) -> None:
        """All that is there now, but not for ever from one that prints faster than we read."""
        for _ in range(16):
            try:
                chunk = os.read(self._output, OUTPUT_CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:  # nobody is left to print: no more events, please
                if self._output in self._events.get_map():
                    self._events.unregister(self._output)
                return
            log.add(chunk)


def _command_line(behaviour: Python, tools: Tools, their_socket: int) -> tuple[str, ...]:
    options = {
        "socket": their_socket,
        "parent": os.getpid(),
        "search_path": [str(each) for each in behaviour.search_path],
    }
    # -I: neither this folder, nor PYTHON* variables, nor the user's own site-packages.
    return tools.python, "-I", str(PROGRAM), json.dumps(options)


def _kind_text(kind: WorkKind) -> str:
    """What the child gets with each job of the kind, as the inside of a JSON object."""
    behaviour = kind.behaviour
    assert isinstance(behaviour, Python)
    function = (behaviour.module, behaviour.function)
    facts = {"kind": kind.name, "function": function, "budgets": dict(kind.budgets)}
    return json.dumps(facts)[1:-1]


def _phase_text(phase: PhaseFacts) -> str:
    """Results are large: the child asks for those that it wants."""
    finished = [name for name in phase.names if name in phase.finished]
    return f', "phase": {json.dumps((phase.name, phase.names, finished))}'


def _slot_text(claim: Claim) -> str:
    slot = None if claim.scheduled_for is None else claim.scheduled_for.isoformat()
    return f', "slot": {json.dumps((claim.schedule, slot))}'


def _phase_result(head: dict[str, Any], phase: PhaseFacts) -> str:
    name = str(head.get("name"))
    return (phase.result_of(name) if name in phase.finished else None) or "null"


def _ended(head: dict[str, Any], body: str) -> Ended:
    memory_bytes = head.get("memory_bytes", 0)
    if "ending" not in head:
        return Ended(Ending("success", body if head.get("result") else None), memory_bytes)
    try:
        ended, _result, names, *rest = head["ending"]
        ending = Ending(ended, None, tuple(str(each) for each in names), *rest)
    except (TypeError, ValueError):
        raise ChildDied("its child process sent an end that is none") from None
    return Ended(ending, memory_bytes)


def _pass_note_on(head: dict[str, Any], assignment: Assignment) -> None:
    if "spent" in head:
        assignment.traces.spent = json.dumps(head["spent"])
    if "percent" in head:
        assignment.report(Note(head["percent"], head.get("note")))


# An idle child has nothing to finish but what its handlers' modules do at exit.
IDLE_GRACE_SECONDS = 1.0
STOP_SECONDS_MAX = 10.0  # beyond the grace; the process group has bounds of its own below this


class ProcessRunner:
    """One child at a time, started with the first job. It is replaced after `max_jobs_per_child`
    jobs, when it holds too much memory, when a kind needs other folders to import from, and when
    its job did not end by itself.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._child: Executor | None = None
        self._search_path: tuple[Path, ...] = ()

    async def run(self, assignment: Assignment) -> Outcome:
        log = JobLog(self._tools.limits.log_bytes_max)
        try:
            child = await self._ready_child(assignment.kind, log)
            ended = await child.do(assignment, log)
        except (ChildDied, OSError) as error:
            return await self._died(error, assignment, log)
        except BaseException:  # cancelled, as a rule: the job is stopped before that gets out
            grace_seconds = assignment.kind.grace_seconds
            bound = trio.current_time() + grace_seconds + STOP_SECONDS_MAX
            with trio.CancelScope(shield=True, deadline=bound):
                await self._stop(grace_seconds, log)
            assignment.traces.log = log.text()
            raise
        await self._recycle(child, ended)
        outcome = outcome_of(ended.ending, assignment.kind, self._tools.limits)
        text, spent = log.text(), assignment.traces.spent
        if text is None and spent is None:
            return outcome
        return outcome._replace(log=text, spent=spent)

    async def close(self) -> None:
        await self._stop(IDLE_GRACE_SECONDS, None)

    async def _ready_child(self, kind: WorkKind, log: JobLog) -> Executor:
        behaviour = kind.behaviour
        assert isinstance(behaviour, Python)
        if self._child is not None and self._search_path != behaviour.search_path:
            await self._stop(IDLE_GRACE_SECONDS, None)
        if self._child is None:
            self._search_path = behaviour.search_path
            self._child = Executor(behaviour, self._tools, kind.grace_seconds)
            await self._greet(self._child, log)
        return self._child

    async def _greet(self, child: Executor, log: JobLog) -> None:
        seconds = self._tools.start_timeout_seconds
        with trio.move_on_after(seconds):
            await child.hello(log)
            return
        raise ChildDied(f"its child process was not ready within {seconds:g} s")

    async def _recycle(self, child: Executor, ended: Ended) -> None:
        tools = self._tools
        if (
            child.jobs >= tools.max_jobs_per_child
            or ended.memory_bytes > tools.max_child_memory_bytes
        ):
            await self._stop(IDLE_GRACE_SECONDS, None)

    async def _died(self, error: Exception, assignment: Assignment, log: JobLog) -> Outcome:
        started = self._child is not None and self._child.jobs > 0
        child = self._child
        await self._stop(0.0, log)
        how = _how_it_ended(child.status) if child is not None else ""
        if isinstance(error, OSError):
            message = f"its child process could not be started: {error}"
        else:
            message = f"{error}{how}"
        spent = assignment.traces.spent
        # One that never got as far as the job is no fault of the job's.
        retryable = assignment.kind.retryable or not started
        outcome = Outcome("failure", None, "child_died", message, retryable)
        return outcome._replace(log=log.text(), spent=spent)

    async def _stop(self, grace_seconds: float, log: JobLog | None) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        await child.stop(grace_seconds, log)


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return ""
    if status >= 0:
        return f" (exit status {status})"
    try:
        return f" (killed by {signal.Signals(-status).name})"
    except ValueError:
        return f" (killed by signal {-status})"
