"""Jobs that have ended, and what retention makes of them."""

from collections.abc import Mapping
from typing import Any

from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import JobState
from musterd.store.retention import Ages, BatchResult, JobPosition, RetentionTask
from tests.contract.job_tools import ending, settle, take_one
from tests.contract.rigs import Rig, SqliteRig

HOUR = 3_600.0
S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED
NEVER: Mapping[JobState, float | None] = {S: None, F: None, C: None}


def all_after(seconds: float | None, **by_kind: float | None) -> Ages:
    """One age for all states, and one each for some kinds."""
    return Ages(
        dict.fromkeys((S, F, C), seconds),
        {kind: dict.fromkeys((S, F, C), age) for kind, age in by_kind.items()},
    )


def task(seconds: float | None = HOUR, batch: int = 100, **more: Any) -> RetentionTask:
    return RetentionTask(all_after(seconds), batch, **more)


async def end(
    engine: Engine,
    state: JobState = S,
    *,
    attempts: int = 1,
    **options: Any,
) -> int:
    """A job that has ended."""
    (job_id,) = await engine.jobs.enqueue([NewJob(options.pop("kind", "report"), **options)])
    for _ in range(attempts - 1):
        claim = await take_one(engine)
        await settle(engine, ending(claim, JobState.QUEUED, delay_seconds=0))
    claim = await take_one(engine)
    assert claim.id == job_id
    error = '{"type": "E", "message": "m"}' if state is F else None
    await settle(engine, ending(claim, state, error=error))
    return job_id


async def walk(engine: Engine, what: str, wanted: RetentionTask) -> int:
    """A whole walk; gives how many it was about."""
    done = 0
    place: JobPosition | None = None
    while True:
        result: BatchResult = await getattr(engine.retention, what)(wanted, place)
        done += result.done
        place = result.further
        if place is None:
            return done


def stale_ids(rig: Rig) -> list[int]:
    found = rig.raw("select id from job_rows where stale_at is not null order by id")
    return [row[0] for row in found]


def ids_left(rig: Rig) -> list[int]:
    return [row[0] for row in rig.raw("select id from job_rows order by id")]


def recounted(rig: Rig) -> dict[str, int]:
    return dict(rig.raw(f"select state, count(*) from {rig.table} group by state"))


async def told(engine: Engine, type_: str) -> list[tuple[int | None, dict[str, Any]]]:
    """The events of one type, in order: job and data."""
    await engine.events.order()
    page = await engine.events.read(0)
    return [(one.job_id, dict(one.data)) for one in page.events if one.type == type_]


def message(rig: Rig, job_id: int, state: str) -> None:
    """A message about a job."""
    times = "created_at, due_at, " if isinstance(rig, SqliteRig) else ""
    zeros = "0, 0, " if times else ""
    rig.raw(
        f"insert into webhooks ({times}job_id, url, type, state)"
        f" values ({zeros}{job_id}, 'https://a.example', 'job.succeeded', '{state}')"
    )
