"""Jobs with phases, for the tests of the store."""

from typing import Any
from uuid import uuid4

from musterd.store.engine import Engine
from musterd.store.events import Event, EventFilter
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.leases import Claim, ReapRequest, ReapRule
from musterd.store.phases import KindRule, PhaseStart, PhaseStep
from tests.contract.job_tools import take

NAMES = ("download", "process", "upload")
RULE = ReapRule("requeue", 5)


def start_of(claim: Claim, names: tuple[str, ...] = NAMES) -> PhaseStart:
    return PhaseStart(claim.id, claim.token, claim.worker, claim.claimed_epoch, names)


def step_of(claim: Claim, finished: str, next_: str, **values: Any) -> PhaseStep:
    step = PhaseStep(claim.id, claim.token, finished, None, next_, NAMES)
    return step._replace(**values)


def stolen(what: Any) -> Any:
    """The same under another token."""
    return what._replace(token=uuid4())


async def begun(engine: Engine, names: tuple[str, ...] = NAMES) -> Claim:
    """A job of the kind `video` whose first attempt has begun its phases."""
    await engine.jobs.enqueue([NewJob("video")])
    (claim,) = await take(engine)
    assert await engine.phases.begin([start_of(claim, names)]) == {claim.id: {}}
    return claim


async def look(engine: Engine, job_id: int) -> JobRecord:
    record = await engine.jobs.get(job_id)
    assert record is not None
    return record


async def shown(engine: Engine, job_id: int) -> str:
    """The states of its phases, in order."""
    return " ".join(phase.state for phase in (await look(engine, job_id)).phases)


async def told(engine: Engine, job_id: int) -> list[Event]:
    """All events of a job, in order."""
    await engine.events.order()
    page = await engine.events.read(0, EventFilter(job_id))
    return list(page.events)


async def types_told(engine: Engine, job_id: int) -> list[str]:
    return [event.type.removeprefix("job.") for event in await told(engine, job_id)]


async def reap(engine: Engine, rule: ReapRule = RULE) -> None:
    await engine.leases.reap(ReapRequest({}, rule, 100))


async def tell_names(engine: Engine, names: tuple[str, ...] = NAMES) -> None:
    await engine.nodes.declare_kinds({"video": KindRule(phases=names)})
