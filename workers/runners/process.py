"""Python kinds with `isolation = "process"`: the daemon's end of a child that runs handlers, which
its worker keeps from job to job.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import socket
import termios
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import trio

from musterd.catalog.kinds import Python, WorkKind
from musterd.store.job_log import STDERR
from musterd.store.leases import Claim
from musterd.workers.context import PhaseFacts
from musterd.workers.joblog import JobLog, MarkedBytes
from musterd.workers.outcome import Assignment, Contained, Note, Outcome
from musterd.workers.runners.child_messages import (
    FRAME,
    NOBODY,
    Ended,
    Inbox,
    Message,
    MessageFault,
    Question,
    Ready,
    Report,
    whose,
)
from musterd.workers.runners.process_group import ProcessGroup, Start
from musterd.workers.runners.results import outcome_of
from musterd.workers.shortage import keep_reserve, put_off
from musterd.workers.tools import Tools

PROGRAM = Path(__file__).with_name("child.py")
_NO_BYTES = bytes(4)
CHUNK_BYTES = 8_192  # most messages are far smaller, and a large buffer costs time
OUTPUT_CHUNK_BYTES = 65_536
LAST_MESSAGES_MAX = 1_000  # that are read of a child which has been stopped


class ChildDied(Exception):
    """The child ended, or broke its word, before its job was done. The message says how."""


class ChildMisspoke(ChildDied):
    """It said what it may not say. It is ended, and the job in its hands fails."""


class Executor:
    """One child. `start` it before use, `stop` it in any case; one job at a time.

    Its socket and the pipes of its prints are read here, so a child that prints much is never held
    up, and what it prints never gets into what it says. What its Python code prints and logs comes
    through one pipe, in order; through the other comes what programs write to the descriptor of
    its stderr.
    """

    def __init__(self, behaviour: Python, tools: Tools, grace_seconds: float) -> None:
        """Starts the process. Raises OSError where that fails."""
        self.jobs = 0
        self._kind: WorkKind | None = None  # of the latest job
        self._kind_text = ""
        self._inbox = Inbox(tools.max_frame_bytes)
        self._marked = MarkedBytes()
        self._about, self._said = NOBODY, 0  # whose the messages are now, and how many were sent
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
            self._prints, their_prints = self._pipe(theirs)
            self._stderr, their_stderr = self._pipe(theirs)
            self._socket.setblocking(False)
            self._group = ProcessGroup(
                Start(
                    _command_line(behaviour, tools, their_socket.fileno()),
                    tools.environment,
                    grace_seconds,
                    stdout=their_prints,
                    stderr=their_stderr,
                    pass_fds=(their_socket.fileno(),),
                    umask=0o077,
                    user=behaviour.user,
                )
            )

    def _pipe(self, theirs: ExitStack) -> tuple[int, int]:
        """Our end and the child's."""
        reads, writes = os.pipe()
        self._closing.callback(os.close, reads)
        theirs.callback(os.close, writes)
        os.set_blocking(reads, False)
        return reads, writes

    def _watch(self) -> None:
        """Makes one file to wait for out of all: socket, prints, and the end of the process."""
        self._events = self._closing.enter_context(selectors.DefaultSelector())
        self._events.register(self._socket, selectors.EVENT_READ)
        self._events.register(self._prints, selectors.EVENT_READ)
        self._events.register(self._stderr, selectors.EVENT_READ)
        self._pidfd = os.pidfd_open(self._group.pid) if hasattr(os, "pidfd_open") else None
        if self._pidfd is not None:
            self._closing.callback(os.close, self._pidfd)
            self._events.register(self._pidfd, selectors.EVENT_READ)

    async def hello(self, log: JobLog) -> None:
        """Returns once it is ready for jobs. Raises ChildDied if it ends instead."""
        message = await self._receive(log)
        if type(message) is not Ready:
            raise ChildMisspoke(f"its child process sent {message!r:.200} before it was ready")

    @property
    def has_ended(self) -> bool:
        return self._group.has_ended

    def left_over(self) -> bool:
        """Whether it has said something since its last job ended: nothing that anyone waits for."""
        return not self._inbox.is_empty or _has_bytes(self._socket.fileno())

    async def do(self, assignment: Assignment, log: JobLog) -> Ended:
        """Runs the job. Raises ChildDied if the child does not live to its end."""
        self.jobs += 1
        self._about = whose(assignment.claim)
        self._inbox.expect(self._about)
        await self._send(self._job_head(assignment), assignment.claim.payload)
        while True:
            message = await self._receive(log)
            if isinstance(message, Ended):
                return message
            if isinstance(message, Report):
                _pass_on(message, assignment)
            elif isinstance(message, Question):
                await self._answer(message, assignment)
            else:
                raise ChildMisspoke("its child process said in the midst of a job that it is ready")

    async def _answer(self, asked: Question, assignment: Assignment) -> None:
        if asked.phase is None:
            seconds = assignment.recorder.remaining_seconds()
            await self._send(json.dumps({"is": "remaining", "seconds": seconds}), "")
        elif assignment.phase is not None:
            await self._send('{"is": "phase"}', _phase_result(asked.phase, assignment.phase))
        else:
            raise ChildMisspoke("its child process asked for a phase of a job that has none")

    def _job_head(self, assignment: Assignment) -> str:
        claim, kind = assignment.claim, assignment.kind
        if kind is not self._kind:  # else its text is at hand: most jobs are like the one before
            self._kind, self._kind_text = kind, _kind_text(kind)
        spent = json.dumps(json.loads(claim.spent)) if claim.spent else "{}"
        what = f'[{claim.id}, "{claim.token}", {claim.attempt}]'
        phase = "" if assignment.phase is None else _phase_text(assignment.phase)
        slot = "" if claim.schedule is None else _slot_text(claim)
        trace = "" if claim.traceparent is None else f', "trace": "{claim.traceparent}"'
        return f'{{{self._kind_text}, "claim": {what}, "spent": {spent}{phase}{slot}{trace}}}'

    async def stop(
        self, grace_seconds: float, log: JobLog | None, assignment: Assignment | None = None
    ) -> None:
        """Ends it and all that it has started: TERM, the grace, KILL. Bounded, not to be cancelled,
        safe to repeat. What it has printed till then goes to `log`, what it has reported of its job
        to `assignment`.
        """
        self._group.grace_seconds = grace_seconds
        try:
            await self._group.stop()
            if log is not None:
                self._drain_output(log)
            if assignment is not None:
                self._hear_out(assignment)
        finally:
            self._closing.close()

    def _hear_out(self, assignment: Assignment) -> None:
        """What it has reported till its end; whatever else it said is of no use any more."""
        with suppress(ChildDied):  # all has been read, or makes no sense
            for _ in range(LAST_MESSAGES_MAX):
                message = self._next_message()
                if message is None:
                    self._read_socket()
                elif isinstance(message, Report):
                    _pass_on(message, assignment)

    @property
    def status(self) -> int | None:
        """After `stop`: its exit status; negative = the signal that ended it."""
        return self._group.status

    async def _send(self, head: str, body: str) -> None:
        data = f"{head}\n{body}".encode()
        self._said += 1
        rest: bytes | memoryview = FRAME.pack(len(data), self._said, self._about) + data
        while rest:
            try:
                sent = self._socket.send(rest)
                rest = memoryview(rest)[sent:]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
            except OSError:
                return  # it has ended: reading tells

    async def _receive(self, log: JobLog) -> Message:
        while (message := self._next_message()) is None:
            await trio.lowlevel.wait_readable(self._events)
            # Prints after messages: whatever was printed before a message is there by then.
            if not self._read_socket() or _has_bytes(self._prints) or _has_bytes(self._stderr):
                self._drain_output(log)
        return message

    def _next_message(self) -> Message | None:
        try:
            return self._inbox.next()
        except MessageFault as fault:
            raise ChildMisspoke(f"its child process {fault}") from None

    def _read_socket(self) -> bool:
        """Whether there was something."""
        try:
            chunk = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            if self._has_ended():
                # A grandchild may hold the socket open, but nobody is there to answer.
                raise ChildDied("its child process has ended") from None
            return False
        except OSError as error:
            raise ChildDied(f"its child process is gone ({error.strerror})") from None
        if not chunk:
            raise ChildDied("its child process has ended")
        self._inbox.add(chunk)
        return True

    def _has_ended(self) -> bool:
        return self._pidfd is not None and any(
            key.fd == self._pidfd for key, _ in self._events.select(0)
        )

    def _drain_output(self, log: JobLog) -> None:
        for chunk in self._chunks_of(self._prints):
            for part, voice in self._marked.parts(chunk):
                log.add(part, voice)
        for chunk in self._chunks_of(self._stderr):
            log.add(chunk, STDERR)

    def _chunks_of(self, pipe: int) -> Iterator[bytes]:
        """All that is there now, but not for ever from one that prints faster than we read."""
        for _ in range(16):
            try:
                chunk = os.read(pipe, OUTPUT_CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:  # nobody is left to print: no more events, please
                if pipe in self._events.get_map():
                    self._events.unregister(pipe)
                return
            yield chunk


def _has_bytes(file: int) -> bool:
    """Whether there is something to read; the end of a file is nothing. Cheaper than to try."""
    return fcntl.ioctl(file, termios.FIONREAD, _NO_BYTES) != _NO_BYTES


def _command_line(behaviour: Python, tools: Tools, their_socket: int) -> tuple[str, ...]:
    options = {
        "socket": their_socket,
        "parent": os.getpid(),
        "search_path": [str(each) for each in behaviour.search_path],
        "message_bytes_max": tools.max_frame_bytes,
        "result_bytes_max": tools.limits.result_bytes_max,
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


def _phase_result(name: str, phase: PhaseFacts) -> str:
    return (phase.result_of(name) if name in phase.finished else None) or "null"


def _pass_on(news: Report, assignment: Assignment) -> None:
    if news.spent is not None:
        assignment.recorder.spend(news.spent)
    if news.percent is not None:
        assignment.recorder.report(Note(news.percent, news.note))


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
        log = assignment.recorder.log
        try:
            child = await self._ready_child(assignment.kind, log)
            ended = await child.do(assignment, log)
        except (ChildDied, OSError) as error:
            return await self._died(error, assignment)
        except BaseException:  # cancelled, as a rule: the job is stopped before that gets out
            grace_seconds = assignment.kind.grace_seconds
            bound = trio.current_time() + grace_seconds + STOP_SECONDS_MAX
            with trio.CancelScope(shield=True, deadline=bound):
                await self._stop(grace_seconds, log, assignment)
            raise
        self._tools.held_memory(assignment.kind.name, ended.memory_bytes)
        await self._recycle(child, ended)
        return outcome_of(ended.ending, assignment.kind, self._tools.limits)

    async def close(self) -> None:
        await self._stop(IDLE_GRACE_SECONDS, None)

    async def _ready_child(self, kind: WorkKind, log: JobLog) -> Executor:
        behaviour = kind.behaviour
        assert isinstance(behaviour, Python)
        if self._child is not None and self._search_path != behaviour.search_path:
            await self._stop(IDLE_GRACE_SECONDS, None)
        if self._child is not None and self._child.has_ended:  # while it idled: no job's fault
            await self._stop(0.0, None)
        if self._child is not None and self._child.left_over():
            why = ChildMisspoke("a child process sent a message after its job had ended")
            self._tools.contained(Contained("child", kind.name, None, why))
            await self._stop(0.0, None)
        if self._child is None:
            keep_reserve()
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

    async def _died(self, error: Exception, assignment: Assignment) -> Outcome:
        if isinstance(error, ChildMisspoke):
            claim = assignment.claim
            self._tools.contained(Contained("child", claim.kind, claim.id, error, claim.attempt))
        started = self._child is not None and self._child.jobs > 0
        child = self._child
        await self._stop(0.0, assignment.recorder.log)
        how = _how_it_ended(child.status) if child is not None else ""
        if isinstance(error, OSError):
            waiting = put_off(error, assignment.claim, self._tools.contained)
            if waiting is not None:
                return waiting
            message = f"its child process could not be started: {error}"
        else:
            message = f"{error}{how}"
        # One that never got as far as the job is no fault of the job's.
        retryable = assignment.kind.retryable or not started
        return Outcome("failure", None, "child_died", message, retryable)

    async def _stop(
        self, grace_seconds: float, log: JobLog | None, assignment: Assignment | None = None
    ) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        await child.stop(grace_seconds, log, assignment)


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return ""
    if status >= 0:
        return f" (exit status {status})"
    try:
        return f" (killed by {signal.Signals(-status).name})"
    except ValueError:
        return f" (killed by signal {-status})"
