"""A claim in this node's hands, from the claim to its settlement, and the seat of its worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeAlias, cast

import attrs
import trio

from musterd.catalog.kinds import WorkKind
from musterd.store.input import SUSPECT
from musterd.store.leases import Claim, Hold, LogNote, Settlement, Successes, Verdict
from musterd.store.lifecycle import JobState, Request
from musterd.store.phases import PhaseEnd, PhaseState
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import SUCCEEDED, Note, Outcome, on_request

TOGETHER_CHARACTERS_MAX = 262_144
PART_CHARACTERS = 4_096  # of a log, in one row of the store, until the next row begins
STOPPING_SECONDS = 2.0  # how long work that must stop may take beyond its grace
TURN_SECONDS = 0.001  # jobs that never wait are done in a row for so long, then others are due
LOOKS_A_TURN = 4  # so often it is looked whether that is over; then it is in any case
UNREAD: Final = object()  # a payload that its own attempt decodes


# A moment on Trio's clock, which stands still in a sleep of the machine, and on one that goes on.
Moment: TypeAlias = tuple[float, float]


class Ignored(NamedTuple):
    """A request that has not been obeyed in time."""

    job_id: int
    kind: str
    attempt: int
    request: Request
    seconds: float  # since the work was asked to stop


class Held:
    """Fields are for reading: the desk, the lease keeper and the worker of the attempt change them
    through the methods below. What few jobs need has its value in the class.

    `trusted_until` is on the clock that runs through a suspend. After it the lease may belong to
    another node, and the holder stops by itself without asking.
    """

    worker: int | None = None
    started_local: float | None = None
    started_epoch: float | None = None  # the same on the store's clock
    started_late: bool = False  # after its lease could still be trusted
    ended_epoch: float = 0.0
    run_seconds: float = 0.0
    result: str | None = None  # of a plain success
    start_written: bool = False
    cancel_work: Callable[[], None] | None = None  # of the attempt under way, where it can be
    settling: bool = False
    held_up: bool = False  # somebody else keeps its end from being written
    lost: bool = False
    request: Request | None = None  # what somebody has asked for; obeyed once
    asked_local: float = 0.0  # when that was
    grace_seconds: float = 0.0  # how long its work may take to stop
    cannot_stop: bool = False  # its work runs where nothing can end it: it is waited for
    has_spoken: bool = False  # of its progress, what it spent, or a phase; most never do
    last_note: Note | None = None  # of its progress
    written_note: Note | None = None  # the last that is in the store
    log: JobLog | None = None  # of an attempt that has written something
    log_begun: bool = False  # some of it may be in the store
    log_written: int = 0  # up to this line it is there
    log_part: int = 0  # the line before the part that is being written
    spent: str | None = None  # JSON text, of all attempts together; None = nothing by this one
    written_spent: str | None = None
    recorded_local: float = float("-inf")  # when the store was last told of its progress
    phase: PhaseEnd | None = None  # the phase that it is in, as it would be settled now
    judged_by: WorkKind | None = None  # the phase in which it failed, where one did

    def __init__(
        self, claim: Claim, claimed_local: float, trusted_until: float, payload: Any = UNREAD
    ) -> None:
        """`payload`: the value of the claim's, where it is known."""
        self.claim, self.payload = claim, payload
        self.claimed_local, self.trusted_until = claimed_local, trusted_until

    # -- at the desk

    def start(self, worker: int, now: Moment, now_epoch: float) -> None:
        self.worker, self.started_epoch = worker, now_epoch
        self.started_local, boottime = now
        if boottime >= self.trusted_until:
            self.started_late = True

    def end(self, ended_epoch: float, run_seconds: float) -> None:
        self.settling, self.ended_epoch, self.run_seconds = True, ended_epoch, run_seconds

    def settled(self, verdict: Verdict) -> Ended:
        claim = self.claim
        settlement = Settlement(
            claim.id, claim.token, claim.attempt, self.worker, self.started_epoch, self.ended_epoch,
            *verdict, claim.target, claim.kind, self.run_seconds, self.log_begun,
        )  # fmt: skip
        return Ended(settlement, self)

    def succeeded(self) -> Ended:
        """Of a plain success, where it is not as plain to write as it was."""
        return self.settled(SUCCEEDED._replace(result=self.result))

    def wait_for_others(self) -> None:
        self.held_up = True

    def lose(self) -> None:
        """The lease is gone: its attempt is cancelled and nothing more is written for it."""
        self.lost = True
        if self.cancel_work is not None:
            self.cancel_work()

    def obey(self, request: Request) -> None:
        """Somebody wants it canceled or paused: its attempt is cancelled, and settled as that.

        Work that can't be stopped goes on, under its lease: were it left to itself, another run of
        the job, or of its target, could begin beside it.
        """
        self.request, self.asked_local = request, trio.current_time()
        if self.cancel_work is not None and not self.cannot_stop:
            self.cancel_work()

    # -- its lease

    def hold(self) -> Hold:
        return Hold(self.claim.id, self.claim.token, self.worker, self.started_epoch)

    def renewed(self, trusted_until: float, *, start_written: bool) -> None:
        self.trusted_until = trusted_until
        self.start_written = self.start_written or start_written

    def note_start_written(self) -> None:
        self.start_written = True

    # -- its attempt

    def trace(self, traceparent: str) -> None:
        """Its work is part of this span."""
        self.claim = self.claim._replace(traceparent=traceparent)

    def run_within(
        self, cancel_work: Callable[[], None], grace_seconds: float, cannot_stop: bool
    ) -> None:
        self.cancel_work = cancel_work
        self.grace_seconds, self.cannot_stop = grace_seconds, cannot_stop

    def has_run(self) -> None:
        self.cancel_work = None

    def note(self, note: Note) -> None:
        self.last_note, self.has_spoken = note, True

    def spend(self, spent: str) -> None:
        self.spent, self.has_spoken = spent, True

    def note_recorded(self, local: float) -> None:
        """The store is told of its progress now, or, where it cannot be, as if it had been then."""
        self.recorded_local = local

    @property
    def has_news(self) -> bool:
        """Whether it has said something that is not in the store."""
        note, spent = self.last_note, self.spent
        return (note is not None and note is not self.written_note) or (
            spent is not None and spent != self.written_spent
        )

    def news(self) -> tuple[Note | None, str | None]:
        """Its note and what it has spent, where that is not in the store."""
        note = None if self.last_note is self.written_note else self.last_note
        return note, None if self.spent == self.written_spent else self.spent

    def news_written(self, note: Note | None, spent: str | None) -> None:
        self.written_note = note or self.written_note
        self.written_spent = spent or self.written_spent

    def forget_news(self) -> None:
        """No store takes it: it is not sent again, nor with the end of its attempt."""
        self.last_note = self.written_note
        self.spent = self.written_spent

    # -- its log

    def begin_log(self, log: JobLog) -> None:
        self.log = log

    def log_sent(self) -> None:
        self.log_begun = True

    def log_noted(self, part: LogNote) -> None:
        """The store has it. The next write goes on with this part, unless it is large already."""
        self.log_written = part.last
        self.log_part = part.last if len(part.text) >= PART_CHARACTERS else part.first - 1

    # -- its phases

    def begin_phase(self, name: str, grace_seconds: float, cannot_stop: bool) -> None:
        self.phase, self.has_spoken = PhaseEnd(name, PhaseState.RUNNING), True
        self.grace_seconds, self.cannot_stop = grace_seconds, cannot_stop

    def leave_phase(self) -> None:
        """Its work has ended, however it did."""
        self.cannot_stop = False

    def end_phase(self, end: PhaseEnd, judged_by: WorkKind | None = None) -> None:
        self.phase, self.has_spoken, self.judged_by = end, True, judged_by

    def advance(self) -> None:
        """The store has the end of the phase: what was noted before says nothing new."""
        self.last_note = None

    # -- its end

    def with_progress(self, verdict: Verdict) -> Verdict:
        """The end of its attempt, with its log, and with what is not yet in the store of how far it
        came.
        """
        if self.log is not None:
            self.log.close()
            if (said := self.log.text()) is not None:
                verdict = verdict._replace(log=said)
        if not self.has_spoken:
            return verdict
        note, phase = self.last_note, self.phase
        is_news = note is not self.written_note and verdict.state is not JobState.SUCCEEDED
        if note is not None and is_news:
            verdict = verdict._replace(percent=note.bounded_percent, note=note.note)
        if verdict.spent is None and self.spent != self.written_spent:
            verdict = verdict._replace(spent=self.spent)
        if phase is None:
            return verdict
        if phase.state is PhaseState.SUCCEEDED:
            return verdict._replace(phase=phase)
        percent = note.phase_percent if note is not None and note.phase == phase.name else None
        if percent is None and phase.state is PhaseState.RUNNING:
            return verdict  # nothing that the store does not know
        return verdict._replace(phase=phase._replace(progress=percent))

    # -- a request that it does not obey

    def ignores_request(self, now_local: float) -> bool:
        """Whether its work should have ended by now."""
        asked = self.request is not None and self.started_local is not None
        return asked and now_local - self.asked_local > self.grace_seconds + STOPPING_SECONDS

    def ignored(self, now_local: float) -> Ignored | None:
        """What its work ignores; None = nothing, or not for long. Its lease goes on being renewed,
        so that nobody else starts the job beside it.
        """
        if self.request is None or self.settling or not self.ignores_request(now_local):
            return None
        claim, seconds = self.claim, now_local - self.asked_local
        return Ignored(claim.id, claim.kind, claim.attempt, self.request, seconds)

    def end_after_request(self, outcome: Outcome, now_local: float) -> Outcome:
        """What an end amounts to that the work came to by itself. Success within the time it had to
        stop is success; whatever else it does after the request, the job is what was asked for.
        """
        if self.request is None:
            return outcome
        if outcome.ended == "success" and not self.ignores_request(now_local):
            return outcome
        return on_request(self.request)


@attrs.define(eq=False)
class Seat:
    """A worker's place at the desk, which alone changes it. `retiring`: finishes its job, then
    leaves; a retiring worker may be taken back until it has left.
    """

    worker: int
    held: Held | None = None
    retiring: bool = False
    given: Held | None = None  # handed over while it waited, not yet taken in hand
    free_since: Moment | None = None  # its last job ended then, and no other task ran since
    idle_since_local: float | None = None  # its last job ended then, and no other lay ready
    turn_ends_local: float = 0.0
    looks: int = 0  # in this turn
    bell: trio.Event | None = None  # set = come and look; there while it waits

    @property
    def is_idle(self) -> bool:
        return self.held is None and self.given is None

    def begin_turn(self, now_local: float) -> None:
        """Its jobs are done in a row from now on, as long as they do not wait."""
        self.turn_ends_local, self.looks = now_local + TURN_SECONDS, 0

    def has_had_its_turn(self) -> bool:
        """To be asked every few jobs: a look at the clock."""
        self.looks += 1
        if self.free_since is None or self.looks >= LOOKS_A_TURN:
            return True
        return self.free_since[0] >= self.turn_ends_local

    def retire(self) -> None:
        self.retiring = True
        self.ring()

    def take_back(self) -> None:
        self.retiring = False

    def ring(self) -> None:
        if self.bell is not None:
            self.bell.set()

    def hand(self, held: Held) -> None:
        self.given = held
        self.ring()

    def is_stuck(self, now_local: float, seconds: float) -> bool:
        """Whether its present job has taken longer than that already."""
        started = self.held.started_local if self.held else None
        return started is not None and now_local - started > seconds


class Ended(NamedTuple):
    """The end of an attempt, on its way to the store."""

    settlement: Settlement
    held: Held


def successes(helds: Sequence[Held]) -> Successes:
    """The ends of these, which were plain successes."""
    return Successes.of(
        [held.claim for held in helds],
        [held.worker or 0 for held in helds],
        [held.started_epoch for held in helds if held.started_epoch is not None],
        [held.ended_epoch for held in helds],
        [held.result for held in helds],
        [held.run_seconds for held in helds],
    )


def payloads(claims: Sequence[Claim]) -> Iterable[object]:
    """The values of their payloads, read together, which costs a fifth of one by one. Where a text
    wants a closer look all are left to their attempts.
    """
    text = ",".join([claim.payload for claim in claims])
    if len(text) <= TOGETHER_CHARACTERS_MAX and not SUSPECT.search(text):
        with suppress(ValueError, RecursionError):
            values = json.loads(f"[{text}]")
            if len(values) == len(claims):
                return cast("list[object]", values)
    return repeat(UNREAD)


def all_ignored(helds: Iterable[Held], now_local: float) -> list[Ignored]:
    """The longest first."""
    found = [one for held in helds if (one := held.ignored(now_local)) is not None]
    return sorted(found, key=lambda one: -one.seconds)
