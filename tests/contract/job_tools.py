"""What a test does with jobs by the words of an engine: puts, takes, ends and looks at them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import attrs

from musterd.store.engine import Engine
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.leases import (
    Caps,
    Claim,
    ClaimRequest,
    Ends,
    Exchange,
    Reaped,
    ReapRequest,
    ReapRule,
    Settlement,
)
from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.contract.rigs import LEASE_SECONDS, Rig


async def visit(
    engine: Engine,
    workers: int = 1,
    settlements: Sequence[Settlement] = (),
    caps: Caps = (),
    **more: Any,
) -> Exchange:
    """Settles these, and claims for workers 1, 2, 3, …; `more` are other fields of the request."""
    idle = tuple(range(1, workers + 1))
    request = ClaimRequest(uuid4(), "north", idle, 0, LEASE_SECONDS, caps)
    return await engine.leases.exchange(Ends(settlements), attrs.evolve(request, **more))


async def take(
    engine: Engine, workers: int = 1, ahead: int = 0, node: str = "north", token: UUID | None = None
) -> list[Claim]:
    return (await visit(engine, workers, ahead=ahead, node=node, token=token or uuid4())).claims


async def take_one(engine: Engine, node: str = "north") -> Claim:
    (claim,) = await take(engine, node=node)
    return claim


def reap_by(on_lease_lost: str, max_attempts: int = 10, batch: int = 100) -> ReapRequest:
    """By one rule for all kinds."""
    return ReapRequest({}, ReapRule(on_lease_lost, max_attempts), batch)


async def settle(engine: Engine, *settlements: Settlement) -> Exchange:
    return await engine.leases.exchange(Ends(settlements), None)


def ending(
    claim: Claim,
    state: JobState = JobState.SUCCEEDED,
    outcome: AttemptOutcome | None = None,
    **values: Any,
) -> Settlement:
    """A settlement of a job that was done with as soon as it was claimed."""
    return Settlement(
        claim.id,
        claim.token,
        claim.attempt,
        claim.worker,
        values.pop("started_epoch", claim.claimed_epoch),
        values.pop("ended_epoch", claim.claimed_epoch),
        state,
        outcome or OUTCOMES[state],
        target=claim.target,
        **values,
    )


OUTCOMES = {
    JobState.SUCCEEDED: AttemptOutcome.SUCCEEDED,
    JobState.FAILED: AttemptOutcome.FAILED,
    JobState.CANCELED: AttemptOutcome.CANCELED,
    JobState.PAUSED: AttemptOutcome.PAUSED,
    JobState.QUEUED: AttemptOutcome.RETRYING,
}


def moment_of(epoch: float) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)


async def put(engine: Engine, *priorities: int, kind: str = "report") -> list[int]:
    """One job a priority."""
    return await engine.jobs.enqueue([NewJob(kind, priority=priority) for priority in priorities])


async def state_of(engine: Engine, job_id: int) -> JobState:
    record = await engine.jobs.get(job_id)
    assert record is not None
    return record.state


def ids(claims: Sequence[Claim | Reaped]) -> list[int]:
    return [claim.id for claim in claims]


async def look(rig: Rig, job_id: int) -> JobRecord:
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    return record
