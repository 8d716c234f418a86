"""What may be done to a job, as the statements that the product sends for it, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from uuid import uuid4

import attrs

from musterd.store.control import Selection, obstacle_of, states_for
from musterd.store.jobs import NewJob
from musterd.store.leases import (
    Caps,
    Claim,
    ClaimRequest,
    Ends,
    Hold,
    ProgressNote,
    Successes,
)
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.phases import PhaseEnd, PhaseStart, PhaseState, PhaseStep
from musterd.store.postgres import retention
from musterd.store.postgres.claiming import ClaimForm, claim_params, one_claim_params
from musterd.store.postgres.control import bulk_params
from musterd.store.postgres.exchanges import settlement_params, success_params
from musterd.store.postgres.jobs import new_job_params
from musterd.store.postgres.leases import hold_params, progress_params, reap_params
from musterd.store.postgres.phases import PostgresPhases, phases_ended
from musterd.store.postgres.statements import Params, given_params, numbers, texts
from musterd.store.retention import RetentionTask
from tests.contract.job_tools import ending, reap_by
from tests.contract.retention_tools import HOUR, all_after
from tests.contract.rigs import LEASE_SECONDS
from tests.contract.sessions import Connection, Row, Statement, statement_of

NARROW: Caps = (("narrow", 1),)
MOST = 3
NAMES = ("one", "two")
IDS = range(1, 7)  # of all jobs that a scene may have
ERROR = '{"type": "E", "message": "m"}'


class Step(Protocol):
    """One statement, as part of a transaction."""

    @property
    def name(self) -> str: ...

    def run(self, conn: Connection) -> list[Row]: ...


@attrs.frozen
class Actor:
    """Who does it: under which claim of job 1, and how it claims. `beside`: another job that was
    claimed with it.
    """

    node: str
    held: Claim
    capped: bool = False
    beside: Claim | None = None

    @property
    def targeted(self) -> bool:
        return self.held.target is not None


@attrs.frozen
class Deleting:
    """What was picked before, in the same transaction."""

    picking: Statement
    name: str = "delete_expired"

    def run(self, conn: Connection) -> list[Row]:
        ((ids, endings, *_),) = self.picking.run(conn)
        return deleted(conn, ids, endings) if ids else []


@attrs.frozen
class DeletingOne:
    """What somebody names, if nothing is in the way."""

    job_id: int
    name: str = "delete_expired"

    def run(self, conn: Connection) -> list[Row]:
        for state, _, halts, is_untold in Statement("pick_one", {"id": self.job_id}).run(conn):
            if obstacle_of(JobState(state), halts=halts, is_untold=is_untold) is None:
                return deleted(conn, [self.job_id], [])
        return []


def deleted(conn: Connection, ids: Sequence[int], endings: Sequence[int]) -> list[Row]:
    picked = {"ids": numbers(ids), "endings": numbers(endings)}
    kept = {"hook": None, "by": None, "object_ids": "{}", "archived": "{}", "sent": "{}"}
    return Statement("delete_expired", {**picked, **kept}).run(conn)


@attrs.define
class Reaping:
    """Remembers whose targets are to be passed on."""

    reaping: Statement
    targets: set[str] = attrs.field(factory=set[str], init=False)
    name: str = "reap"

    def run(self, conn: Connection) -> list[Row]:
        found = self.reaping.run(conn)
        self.targets = {row[5] for row in found}
        return found


@attrs.frozen
class HandingOver:
    """What was reaped before, in the same transaction."""

    reaped: Reaping
    name: str = "hand_over"

    def run(self, conn: Connection) -> list[Row]:
        targets = texts(sorted(self.reaped.targets))
        return Statement(self.name, {"targets": targets, "ring": True}).run(conn)


def claiming(
    node: str, workers: int, *, targeted: bool, capped: bool, ahead: int = 0
) -> list[Step]:
    idle = tuple(range(1, workers + 1))
    caps, most = (NARROW, MOST) if capped else ((), None)
    request = ClaimRequest(uuid4(), node, idle, ahead, LEASE_SECONDS, caps, most)
    params = claim_params(request, 100)
    claim = Statement(ClaimForm(request, with_targets=targeted).statement(has_marks=False), params)
    before = (
        [Statement("lock_caps", {"lock_ms": "0"}), Statement("unpark", params)] if capped else []
    )
    return [*before, claim]


def claim(actor: Actor) -> list[Step]:
    return claiming(actor.node, 2, targeted=actor.targeted, capped=actor.capped)


def claim_one(actor: Actor) -> list[Step]:
    request = ClaimRequest(uuid4(), actor.node, (1,), 0, LEASE_SECONDS)
    stops = [kind for kind, _ in NARROW] if actor.capped else []
    return [Statement("claim_one", one_claim_params(request, stops))]


def settling(
    state: JobState, outcome: AttemptOutcome | None = None, **values: Any
) -> Callable[[Actor], list[Step]]:
    def steps(actor: Actor) -> list[Step]:
        ends = [ending(actor.held, state, outcome, **values)]
        params = settlement_params(ends)
        settle: list[Step] = [Statement("settle", params)]
        if (phases := phases_ended(ends)) is not None:
            settle[:0] = [Statement("lock_leases", params), Statement("settle_phases", phases)]
        return _passing_on(Ends(ends), settle)

    return steps


def _passing_on(ends: Ends, settle: list[Step]) -> list[Step]:
    if not ends.targets:
        return settle
    targets = texts(ends.targets)
    handing = Statement("hand_over", {"targets": targets, "ring": True})
    return [Statement("lock_targets", {"targets": targets}), *settle, handing]


def succeed_plainly(actor: Actor) -> list[Step]:
    moment = [actor.held.claimed_epoch]
    ended = Successes.of([actor.held], [1], moment, moment, [None], [0.0])
    settle: list[Step] = [Statement("settle_successes", success_params(ended))]
    return _passing_on(Ends(successes=ended), settle)


def exchange(actor: Actor) -> list[Step]:
    return [*settling(JobState.SUCCEEDED)(actor), *claim(actor)]


def renew(actor: Actor) -> list[Step]:
    return _renewing(actor.held)


def renew_both(actor: Actor) -> list[Step]:
    assert actor.beside is not None
    return _renewing(actor.held, actor.beside)


def _renewing(*claims: Claim) -> list[Step]:
    holds = [Hold(one.id, one.token, 1, one.claimed_epoch) for one in claims]
    return [Statement("renew", {**hold_params(holds), "lease_seconds": LEASE_SECONDS})]


def of_the_other(do: Callable[[Actor], list[Step]]) -> Callable[[Actor], list[Step]]:
    """The same, done to the job that was claimed with job 1."""

    def steps(actor: Actor) -> list[Step]:
        assert actor.beside is not None
        return do(attrs.evolve(actor, held=actor.beside))

    return steps


def succeed_both(actor: Actor) -> list[Step]:
    assert actor.beside is not None
    both = [ending(one, JobState.SUCCEEDED) for one in (actor.held, actor.beside)]
    return [Statement("settle", settlement_params(both))]


def note_progress(actor: Actor) -> list[Step]:
    note = ProgressNote(actor.held.id, actor.held.token, 70.0, "far", None)
    return [Statement("note_progress", progress_params([note]))]


def begin_phases(actor: Actor) -> list[Step]:
    start = PhaseStart(actor.held.id, actor.held.token, 1, actor.held.claimed_epoch, NAMES)
    return [
        Statement("begin_phases", {
            **given_params([(start.id, start.token)]), "started": numbers([start.id]),
            "workers": numbers([1]), "started_epochs": numbers([start.started_epoch]),
            "phase_ids": numbers([start.id] * len(NAMES)), "phase_names": texts(NAMES),
            "lease_seconds": None,
        }),
    ]  # fmt: skip


def advance_phases(actor: Actor) -> list[Step]:
    step = PhaseStep(actor.held.id, actor.held.token, *(NAMES[0], None, NAMES[1], NAMES))
    return [statement_of(lambda run: PostgresPhases(run).advance([step]))]


def reap(actor: Actor) -> list[Step]:
    request = reap_by("requeue", 9, 10)
    reaping = Statement("reap", {**reap_params(request), "targeted": actor.targeted})
    if not actor.targeted:
        return [reaping]
    reaped = Reaping(reaping)
    return [reaped, HandingOver(reaped)]


def unpark(_actor: Actor) -> list[Step]:
    return [Statement("unpark_uncapped", {"kinds": texts(["narrow"]), "batch": 100})]


def acting(action: Action) -> Callable[[Actor], list[Step]]:
    return lambda actor: [Statement("control", {"action": action.value, "id": actor.held.id})]


def acting_on_all(action: Action) -> Callable[[Actor], list[Step]]:
    def steps(_actor: Actor) -> list[Step]:
        params = bulk_params(action, list(IDS), Selection(states_for(action)))
        locking = Statement("lock_targets_of", {"ids": params["ids"]})
        return [locking, Statement("control_many", params)]

    return steps


def mark(_actor: Actor) -> list[Step]:
    return [Statement("mark_stale", _walk(stale=False))]


def mark_one(_actor: Actor) -> list[Step]:
    return [Statement("mark_stale", _walk(stale=False, batch=1))]


def gather(_actor: Actor) -> list[Step]:
    return [Statement("gather_endings", retention._closeness(_task()))]  # pyright: ignore[reportPrivateUsage] - its values


def delete(_actor: Actor) -> list[Step]:
    return [Deleting(Statement("pick_expired", _walk(stale=True)))]


def delete_one(actor: Actor) -> list[Step]:
    return [Statement("lock_one", {"id": actor.held.id}), DeletingOne(actor.held.id)]


def _walk(*, stale: bool, batch: int = 10) -> Params:
    return retention._walk(_task(batch), None, stale=stale)  # pyright: ignore[reportPrivateUsage] - its values


def _task(batch: int = 10) -> RetentionTask:
    return RetentionTask(all_after(HOUR / 2), batch)


def await_end(actor: Actor) -> list[Step]:
    return [Statement("await_end", {"id": actor.held.id})]


def enqueue(actor: Actor) -> list[Step]:
    new = NewJob(actor.held.kind, target=actor.held.target, priority=1)
    return [Statement("enqueue", new_job_params([new]))]


def enqueue_keyed(actor: Actor) -> list[Step]:
    new = NewJob(actor.held.kind, target=actor.held.target, dedup_key="k")
    return [Statement("enqueue_keyed", new_job_params([new]))]


FINISHED = PhaseEnd(NAMES[0], PhaseState.SUCCEEDED, names=NAMES)
VERBS: dict[str, Callable[[Actor], list[Step]]] = {
    "claim": claim,
    "claim one": claim_one,
    "renew": renew,
    "progress": note_progress,
    "begin phases": begin_phases,
    "finish a phase": advance_phases,
    "succeed": settling(JobState.SUCCEEDED),
    "succeed plainly": succeed_plainly,
    "succeed and claim": exchange,
    "fail": settling(JobState.FAILED, error=ERROR),
    "retry": settling(JobState.QUEUED),
    "retry in a phase": settling(JobState.QUEUED, phase=FINISHED),
    "give back": settling(JobState.QUEUED, AttemptOutcome.RELEASED, forgive=True),
    "pause itself": settling(JobState.PAUSED, forgive=True),
    "reap": reap,
    "unpark": unpark,
    **{action.value: acting(action) for action in Action},
    "cancel all": acting_on_all(Action.CANCEL),
    "resume all": acting_on_all(Action.RESUME),
    "mark": mark,
    "mark one": mark_one,
    "gather": gather,
    "delete": delete,
    "delete one": delete_one,
    "await": await_end,
    "enqueue": enqueue,
    "enqueue with a key": enqueue_keyed,
    "renew both": renew_both,
    "succeed both": succeed_both,
    "renew the other": of_the_other(renew),
    "the other succeeds": of_the_other(settling(JobState.SUCCEEDED)),
    "the other succeeds plainly": of_the_other(succeed_plainly),
    "the other is retried": of_the_other(settling(JobState.QUEUED)),
    "cancel the other": of_the_other(acting(Action.CANCEL)),
}
# A worker sends these once it has heard that its phases have begun.
IN_PHASES = {"finish a phase", "retry in a phase"}
# These are about two jobs of one claim.
OF_TWO = {
    "renew both", "succeed both", "renew the other", "the other succeeds",
    "the other succeeds plainly", "the other is retried", "cancel the other",
}  # fmt: skip
# These change nothing that readers see.
UNSEEN = {"await", "gather", "unpark"}
# These are about what has ended.
RETAINING = {"mark", "mark one", "gather", "delete", "delete one"}
# These pass by what somebody else is writing to, and do the rest.
PASSING = {
    "claim", "claim one", "succeed and claim", "reap", "unpark",
    "cancel all", "resume all", "mark", "mark one", "gather", "delete",
}  # fmt: skip


def statements(steps: Sequence[Step]) -> set[str]:
    return {step.name for step in steps} | ({"pick_expired"} if _deletes(steps) else set())


def _deletes(steps: Sequence[Step]) -> bool:
    return any(isinstance(step, Deleting) for step in steps)
