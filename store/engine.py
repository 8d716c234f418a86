"""The Engine protocol: what the rest of musterd may rely on, whichever database is behind it.

Every method is one short transaction on the store's own clock. Unless it says otherwise a method
raises `StoreUnavailable` when the store is away (nothing was written) and `StoreMisconfigured` when
waiting will not help. A cancelled call leaves no half-written state; whether a write landed is then
unknown, as after a lost reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

import attrs

from musterd.store.audit import Audit
from musterd.store.board import Board
from musterd.store.duties import Duties
from musterd.store.events import EventLog
from musterd.store.job import (
    Action,
    Claim,
    ClaimRequest,
    ControlResult,
    Counts,
    Enqueued,
    Exchange,
    Hint,
    Hold,
    JobFilter,
    JobRecord,
    NewJob,
    ProgressNote,
    Reaped,
    ReapRule,
    Renewal,
    Settlement,
)
from musterd.store.nodes import Beat, NodeRecord
from musterd.store.outbox import Outbox
from musterd.store.outlook import Outlooks
from musterd.store.phases import KindRule, Phases
from musterd.store.queue_view import QueueView
from musterd.store.retention import Retention
from musterd.store.schedules import Schedules
from musterd.store.selection import Look, Selection, Step
from musterd.store.standing import Standing
from musterd.store.target import TargetView
from musterd.store.vitals import Vitals

EXCHANGES_AT_ONCE = 2  # that one daemon has under way


@attrs.frozen
class SchemaState:
    """How the store's schema compares with the one this program brings. 0 = there is none."""

    found: int
    wanted: int


@attrs.frozen
class ReapRequest:
    """`rules` by kind; a kind that this node does not know gets `default`."""

    rules: Mapping[str, ReapRule]
    default: ReapRule
    batch: int


class Engine(Protocol):
    """One store, opened by one owner. Methods may be called from several tasks at once."""

    @property
    def name(self) -> str:
        """`postgresql` or `sqlite`."""
        ...

    @property
    def where(self) -> str:
        """The store's address for people, without secrets."""
        ...

    @property
    def audit(self) -> Audit: ...

    @property
    def board(self) -> Board: ...

    @property
    def events(self) -> EventLog: ...

    @property
    def phases(self) -> Phases: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def outlooks(self) -> Outlooks: ...

    @property
    def retention(self) -> Retention: ...

    @property
    def duties(self) -> Duties: ...

    @property
    def schedules(self) -> Schedules: ...

    @property
    def vitals(self) -> Vitals: ...

    async def open(self) -> None:
        """Reaches the store once and learns what it is. Raises if it can't; may then be tried
        again.
        """
        ...

    async def close(self) -> None:
        """Gives every connection and thread back. Never raises; safe to call twice."""
        ...

    async def schema(self) -> SchemaState:
        """Compares schema versions. Raises `StoreMisconfigured` where an applied migration differs
        from the shipped one.
        """
        ...

    async def migrate(self) -> list[str]:
        """Applies what is missing, whole or not at all, under a lock that makes two callers at once
        safe.

        Returns the names of the migrations applied. Raises `StoreMisconfigured` if the store's
        schema is newer than this program.
        """
        ...

    async def start_node(self, node: str) -> int:
        """Declares this engine the home of a daemon's node.

        SQLite: takes the file's daemon lock (raises `StoreMisconfigured` if another daemon has it)
        and gives the leases that a dead daemon left back at once, burning no attempt less; returns
        how many. PostgreSQL: nothing, returns 0.
        """
        ...

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        """Makes all of the jobs or none; returns their ids in order, in place of a job whose key is
        held that of its holder. Wakes idle workers. Raises `InputRefused` for values the store
        refuses.
        """
        ...

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """As `enqueue`, and says which jobs are new. Of callers at the same time with the same key
        one makes the job.
        """
        ...

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        """Settles and claims in one transaction and one round trip, `EXCHANGES_AT_ONCE` at most.
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
        job that ends passes it on before the claim. Raises `OutcomeUnknown` if the reply was lost,
        `InputRefused` if a settlement's values can't be stored (none was then written).
        """
        ...

    async def claims_under(self, token: UUID) -> list[Claim]:
        """The jobs now leased under this token: reads a claim back whose reply was lost."""
        ...

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        """Which of these rejected settlements had in truth been written (the reply was lost)."""
        ...

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        """Extends the leases that still stand, and marks what has started as `running`."""
        ...

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        """Writes progress and what was spent, each fenced by its token; returns the ids that took
        it. At most one note a job.
        """
        ...

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        """Ends leases that have run out, at most `batch`, by the rules; a request to cancel or to
        pause a job goes before them. Safe from many nodes at once; never waits for a locked row.

        Jobs parked for a cap that their kind, by the rules, has no longer are claimable again.
        """
        ...

    async def control(self, action: Action, job_id: int) -> ControlResult:
        """Does to one job what `lifecycle.EFFECTS` allows. Of a leased job it is a request, which
        its holder hears of at once by a hint, at the latest with its next renewal, and which no
        claim, retry or reap loses; a cancel goes before a pause.

        A resumed job is due now and has its whole budget of attempts again. A failed job that is
        cleared stays failed, and no longer halts its target.
        """
        ...

    async def select_jobs(self, which: Selection, after_id: int, span: int) -> Look:
        """Looks through at most `span` jobs of the selection's states with greater ids, in the
        order of their ids. Begin with 0 and go on where it ended.
        """
        ...

    async def control_many(self, action: Action, ids: Sequence[int], which: Selection) -> Step:
        """Does to those of these jobs that still fit what `control` does to one, in one
        transaction. Never waits for a job that somebody else is writing to.
        """
        ...

    async def observe(
        self, limit: int, me: UUID | None = None, leased_max: int | None = None
    ) -> QueueView:
        """Counts due and claimable jobs up to `limit`; for the node `me`, how many more jobs the
        other nodes could run that live and are running; and, where there is a bound, how many more
        jobs may be leased.
        """
        ...

    async def next_due_seconds(self) -> float | None:
        """How long until the next queued job that is not yet due is; None = there is none."""
        ...

    async def counts(self) -> Counts:
        """Jobs by state. Costs the same however many there are."""
        ...

    async def job(self, job_id: int) -> JobRecord | None:
        """One job with all of its attempts, or None."""
        ...

    async def jobs(self, which: JobFilter) -> list[JobRecord]:
        """Jobs with their attempts, newest first, at most `which.limit`."""
        ...

    async def target(self, name: str) -> TargetView | None:
        """Who has this target, and who waits; None = nobody does, as far as claims have seen."""
        ...

    async def pause_queue(self, by: str) -> bool:
        """No claim that starts after this takes a job. False = it was paused already (and by whom
        stays as it was).
        """
        ...

    async def resume_queue(self) -> bool:
        """Claims go on. False = it was not paused."""
        ...

    async def beat(self, beat: Beat) -> None:
        """Notes that a node lives, and how it is. Forgets nodes that have been silent for long."""
        ...

    async def leave(self, node_id: UUID) -> None:
        """Forgets a node that ends as it should."""
        ...

    async def nodes(self) -> list[NodeRecord]:
        """The nodes that live, and those that died without leaving, until they are forgotten; the
        oldest first, at most 1,000.
        """
        ...

    async def tell_kinds(self, rules: Mapping[str, KindRule]) -> None:
        """Says what these kinds are, in place of what was said of them before; one that has no rule
        to speak of is forgotten. The kind "" is all kinds. Writes nothing where that is known.
        """
        ...

    async def standing(self, job_id: int) -> Standing | None:
        """Where a job stands, all of it at one moment; None = there is no such job. Costs the same
        however many jobs there are.
        """
        ...

    async def wait_for_hint(self) -> Hint:
        """Returns when there may be new work, or a request about a leased job; never where there
        are no hints. One may be lost, doubled or late: polling and renewals are the truth. Raises
        `StoreUnavailable` when the source of hints broke; call again after a pause.
        """
        ...
