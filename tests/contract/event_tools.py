"""Reading what a store under test has told."""

from collections.abc import Sequence
from typing import Any

from musterd.store.engine import Engine
from musterd.store.event_types import EVENTS
from musterd.store.events import ALL_EVENTS, Event, EventFilter
from musterd.store.lifecycle import JobState

Told = tuple[str, dict[str, Any]]

STATES = {
    "job.released": JobState.QUEUED,
    "job.assigned": JobState.ASSIGNED,
    "job.started": JobState.RUNNING,
    "job.retrying": JobState.QUEUED,
    "job.requeued": JobState.QUEUED,
    "job.succeeded": JobState.SUCCEEDED,
    "job.failed": JobState.FAILED,
    "job.canceled": JobState.CANCELED,
    "job.paused": JobState.PAUSED,
    "job.resumed": JobState.QUEUED,
}


async def ordered(engine: Engine) -> int:
    """Orders all that has been committed; gives the newest position."""
    newest = await engine.events.order()
    while (now := await engine.events.order()) != newest:
        newest = now
    return newest


async def follow(
    engine: Engine, after: int = 0, which: EventFilter = ALL_EVENTS
) -> tuple[list[Event], int]:
    """All that has been put in order behind a position, and how far that is."""
    found: list[Event] = []
    more = True
    while more:
        page = await engine.events.read(after, which)
        found += page.events
        assert page.position > after or not page.more
        after, more = page.position, page.more
    check(found)
    return found, after


async def everything(engine: Engine, which: EventFilter = ALL_EVENTS) -> list[Event]:
    await ordered(engine)
    return (await follow(engine, 0, which))[0]


async def told(engine: Engine, job_id: int) -> list[Told]:
    """Types, without what they all begin with, and data."""
    found = await everything(engine, EventFilter(job_id=job_id))
    assert all(event.job_id == job_id for event in found)
    return [(event.type.removeprefix("job."), dict(event.data)) for event in found]


async def since(engine: Engine, job_id: int, seen: int) -> list[Told]:
    """What was told of a job after the first so many events."""
    return (await told(engine, job_id))[seen:]


async def types_told(engine: Engine, job_id: int) -> list[str]:
    return [type_ for type_, _ in await told(engine, job_id)]


def state_told(event: Event) -> JobState | None:
    """What the job is in after it; None = it says nothing of that."""
    if event.type == "job.enqueued":
        return JobState(event.data.get("state", "queued"))
    return STATES.get(event.type)


def check(events: Sequence[Event]) -> None:
    """What holds of any stretch of the log."""
    positions = [event.id for event in events]
    assert positions == sorted(set(positions))
    for event in events:
        assert set(event.data) <= set(EVENTS[event.type]), event
        assert (event.job_id is not None) is event.type.startswith("job."), event
        assert (event.kind is not None) is event.type.startswith("job."), event
