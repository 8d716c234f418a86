"""Claims and what follows from them: leases, settlements, progress; the `leases` part of an engine.

The values on the hot path are named tuples: they are cheap to make. `_epoch`: seconds since 1970 on
the store's clock, as the node knows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple, Protocol
from uuid import UUID

import attrs

from musterd.store.lifecycle import AttemptOutcome, JobState, Request
from musterd.store.phases import PhaseEnd

EXCHANGES_AT_ONCE = 2  # that one daemon has under way
Caps = tuple[tuple[str, int], ...]  # (kind, how many of its jobs may be leased at once)
NONE_TURNED: Mapping[int, JobState] = MappingProxyType({})


class Claim(NamedTuple):
    """One job taken under a lease. `token` fences every later write about it."""

    id: int
    kind: str
    payload: str  # JSON text; decoded only inside the job's own error boundary
    attempt: int
    max_attempts: int | None  # the job's own budget, None = as its kind says
    forgiven: int  # claims so far that burned no attempt
    waited_seconds: float  # from its due time to this claim
    worker: int | None  # the worker it was claimed for; None = claimed ahead, state `assigned`
    token: UUID
    spent: str | None = None  # JSON text: what earlier attempts have spent of its budgets
    target: str | None = None
    schedule: str | None = None
    scheduled_for: datetime | None = None
    claimed_epoch: float = 0.0  # never before its job was made
    traceparent: str | None = None  # read where a node traces, then of the span of its run


@attrs.frozen
class ClaimRequest:
    """One call for work. The token is made by the caller, fresh for each call."""

    token: UUID
    node: str
    workers: tuple[int, ...]  # idle workers: the first jobs are theirs and start at once
    ahead: int  # how many more may be taken for workers that will soon be idle
    lease_seconds: float
    caps: Caps = ()  # each kind at most once
    leased_max: int | None = None  # of all kinds together, in the whole store

    @property
    def batch(self) -> int:
        return len(self.workers) + self.ahead


class Verdict(NamedTuple):
    """What the end of an attempt makes of the attempt and of its job."""

    state: JobState  # what the job becomes
    outcome: AttemptOutcome
    delay_seconds: float | None = None  # for `queued`: due then; None = keeps its due time
    result: str | None = None  # JSON text
    error: str | None = None  # JSON text: {"type", "message"}
    reason: str | None = None
    forgive: bool = False  # this attempt burns none
    log: str | None = None  # what the attempt wrote
    spent: str | None = None  # JSON text, of all attempts together; None = as it was
    percent: float | None = None  # how far it came, where that is not yet written
    note: str | None = None  # goes with `percent`
    phase: PhaseEnd | None = None  # the phase that it ended in


class Settlement(NamedTuple):
    """The end of one attempt, to be written: whose it is, then the fields of its `Verdict` in their
    order. Its start goes before what the store has heard of that.
    """

    id: int
    token: UUID
    attempt: int
    worker: int | None
    started_epoch: float | None  # None = never started
    ended_epoch: float
    state: JobState
    outcome: AttemptOutcome
    delay_seconds: float | None = None
    result: str | None = None
    error: str | None = None
    reason: str | None = None
    forgive: bool = False
    log: str | None = None
    spent: str | None = None
    percent: float | None = None
    note: str | None = None
    phase: PhaseEnd | None = None
    target: str | None = None  # of its claim
    kind: str = ""  # of its claim
    run_seconds: float = 0.0  # on a clock that never steps
    log_begun: bool = False  # some of its log may be in the store already: `log` takes its place


class Successes(NamedTuple):
    """Attempts of which nothing else is to be said than that they succeeded, and with what, field
    by field. Most are such, and lists of their fields cost a fraction of an object for each.
    """

    ids: Sequence[int] = ()
    tokens: Sequence[UUID] = ()
    attempts: Sequence[int] = ()
    workers: Sequence[int] = ()
    started_epochs: Sequence[float] = ()
    ended_epochs: Sequence[float] = ()
    kinds: Sequence[str] = ()
    targets: Sequence[str | None] = ()
    results: Sequence[str | None] = ()  # JSON texts
    run_seconds: Sequence[float] = ()

    @classmethod
    def of(
        cls,
        claims: Sequence[Claim],
        workers: Sequence[int],
        started_epochs: Sequence[float],
        ended_epochs: Sequence[float],
        results: Sequence[str | None],
        run_seconds: Sequence[float],
    ) -> Successes:
        ids, tokens = [one.id for one in claims], [one.token for one in claims]
        attempts, kinds = [one.attempt for one in claims], [one.kind for one in claims]
        targets = [one.target for one in claims]
        times = started_epochs, ended_epochs
        return cls(ids, tokens, attempts, workers, *times, kinds, targets, results, run_seconds)

    def jobs(self) -> Iterable[tuple[int, UUID, str | None]]:
        return zip(self.ids, self.tokens, self.targets, strict=True)

    def run_seconds_by_kind(self) -> Mapping[str, Sequence[float]]:
        if self.kinds and self.kinds.count(self.kinds[0]) == len(self.kinds):
            return {self.kinds[0]: self.run_seconds}
        found: dict[str, list[float]] = {}
        each = zip(self.kinds, self.run_seconds, strict=True)
        for kind, alike in groupby(each, key=itemgetter(0)):
            found.setdefault(kind, []).extend(seconds for _, seconds in alike)
        return found

    def settlements(self) -> list[Settlement]:
        state, outcome = JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED
        return [
            Settlement(
                *its, state, outcome, result=result, target=target, kind=kind, run_seconds=seconds
            )
            for its, kind, target, result, seconds in zip(
                *(self._attempts(), self.kinds, self.targets, self.results, self.run_seconds),
                strict=True,
            )
        ]

    def _attempts(self) -> Iterable[tuple[int, UUID, int, int, float, float]]:
        of_job = self.ids, self.tokens, self.attempts, self.workers
        return zip(*of_job, self.started_epochs, self.ended_epochs, strict=True)


NO_SUCCESSES = Successes()


class Ends(NamedTuple):
    """What one visit is to write of attempts, each job once."""

    settlements: Sequence[Settlement] = ()
    successes: Successes = NO_SUCCESSES

    @property
    def are_any(self) -> bool:
        return bool(self.settlements or self.successes.ids)

    @property
    def kinds(self) -> set[str]:
        return {one.kind for one in self.settlements} | set(self.successes.kinds)

    @property
    def targets(self) -> list[str]:
        """Sorted: the order in which they are locked."""
        found = {one.target for one in self.settlements} | set(self.successes.targets)
        return sorted(one for one in found if one is not None)

    @property
    def ids(self) -> list[int]:
        return [*(one.id for one in self.settlements), *self.successes.ids]

    def jobs(self) -> Iterable[tuple[int, UUID, str | None]]:
        yield from ((one.id, one.token, one.target) for one in self.settlements)
        yield from self.successes.jobs()

    def all(self) -> list[Settlement]:
        return [*self.settlements, *self.successes.settlements()]

    def of(self, ids: Collection[int]) -> Ends:
        """Those of these jobs."""
        fields = zip(*self.successes, strict=True)
        successes = Successes(*zip(*(each for each in fields if each[0] in ids), strict=True))
        return Ends([one for one in self.settlements if one.id in ids], successes)


class Hold(NamedTuple):
    """A claim that its node wants to keep: what a renewal needs to know of it."""

    id: int
    token: UUID
    worker: int | None
    started_epoch: float | None  # None = not yet started


class Renewal(NamedTuple):
    """What became of the leases that were to be renewed: those not kept are lost."""

    kept: frozenset[int]
    requests: dict[int, Request]  # kept jobs whose holder is asked for something
    now_epoch: float


class ProgressNote(NamedTuple):
    """How far a job has come. What is None stays as it was; a percent comes with its own note."""

    id: int
    token: UUID
    percent: float | None
    note: str | None
    spent: str | None  # JSON text, of all attempts together
    phase: str | None = None  # the phase it is in; `percent` is the job's, this is the phase's:
    phase_percent: float | None = None


class LogNote(NamedTuple):
    """A part of the log of a job in hand: what is there of a part that begins with the same line is
    replaced. Parts that end at line `floor` or before are no longer kept.
    """

    id: int
    token: UUID
    first: int  # the number of its first line
    last: int
    floor: int
    text: str  # as `store.job_log` has it


class Exchange(NamedTuple):
    """What one visit to the store brought."""

    # settlements that changed no row: the lease was lost, or they had been written before
    rejected: frozenset[int]
    # in claim order; the first ones belong to the request's workers, in their order
    claims: list[Claim]
    # jobs that the claim took out of its way, or that it did not see, since others were claiming:
    # there may be more to claim
    parked: int = 0
    turned: Mapping[int, JobState] = NONE_TURNED  # settled otherwise, since somebody had asked
    full: bool = False  # `leased_max` jobs are leased now: no claim takes more
    # settlements about which nothing was written, since somebody else's open transaction holds the
    # job or its target: they are to be sent again
    held_up: frozenset[int] = frozenset()
    now_epoch: float = 0.0  # there if the claim was made, whatever that found


@attrs.frozen
class ReapRule:
    """What happens to jobs of one kind whose lease ran out."""

    on_lease_lost: str  # requeue | fail | pause
    max_attempts: int  # for jobs without a budget of their own
    capped: bool = False  # only so many may run at once


@attrs.frozen
class ReapRequest:
    """`rules` by kind; a kind that this node does not know gets `default`."""

    rules: Mapping[str, ReapRule]
    default: ReapRule
    batch: int


@attrs.frozen
class Reaped:
    """A job whose lease ran out, and what became of it."""

    id: int
    kind: str
    attempt: int
    node: str
    state: JobState
    damage: str | None = None  # what of its row was changed past the checks of the store


class Leases(Protocol):
    """Takes jobs and keeps, ends and reaps their leases. Errors as for `Engine`."""

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        """Settles and claims in one transaction and one round trip, `EXCHANGES_AT_ONCE` at most.
        What is said of settlements goes for successes too.
        A settlement changes its row only while the row is leased under the settlement's token; the
        others come back as `rejected`. No job is settled twice in one call. A settlement to
        `queued` puts the attempt into the history. One to `queued` or `paused` of a job that is
        to be canceled or paused on request does that instead, and comes back in `turned`.
        The claim takes the first due jobs in claim order (priority, due time, id), counts an
        attempt for each, and takes nothing while the queue is paused. Of a kind with a cap it never
        takes more than leave as many leased as the cap says, in the whole store; what is beyond is
        parked, out of the way of later claims, until there is room. It never takes more than
        leave `leased_max` jobs leased, whatever their kinds. Of a target it takes at most one job,
        and none while another has the target or a job of it is paused or has failed; a job that has
        started keeps its target until it has ended. Settlements of claims with a target name it: a
        job that ends passes it on before the claim. What somebody else holds in an open transaction
        keeps nothing else waiting for long: it comes back as `held_up`. Raises `OutcomeUnknown` if
        the reply was lost, `InputRefused` if a settlement's values can't be stored (none was then
        written).
        """
        ...

    async def set_aside(self, refused: ClaimRequest) -> list[Settlement]:
        """After a claim that was refused: those of the next jobs that no claim can take, because
        somebody changed their rows past the checks of the store, have failed with an error that
        says what was found. Their values are mended, so that everybody can read them.
        """
        ...

    async def claims_under(self, token: UUID) -> list[Claim]:
        """The jobs now leased under this token: reads a claim back whose reply was lost."""
        ...

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        """Which of these rejected settlements had in truth been written (the reply was lost)."""
        ...

    async def renew(self, holds: Sequence[Hold], lease_seconds: float | None) -> Renewal:
        """Extends the leases that still stand, and marks what has started as `running`. One that
        has run out by the store's clock is lost, whether or not it has been reaped.

        Without `lease_seconds` it extends nothing. Cheapest for all that was claimed at once.
        """
        ...

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        """Writes progress and what was spent, each fenced by its token; returns the ids that took
        it. At most one note a job.
        """
        ...

    async def note_logs(self, notes: Sequence[LogNote]) -> frozenset[int]:
        """Writes what jobs in hand have logged so far, each fenced by its token; returns the ids
        that took it. At most one note a job. The end of the attempt brings the whole log; a lease
        that is lost leaves what is there.
        """
        ...

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        """Ends leases that have run out, at most `batch`, by the rules; a request to cancel or to
        pause a job goes before them. Safe from many nodes at once; never waits for a locked row.

        Jobs parked for a cap that their kind, by the rules, has no longer are claimable again.
        """
        ...
