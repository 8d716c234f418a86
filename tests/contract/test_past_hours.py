"""An hour of a real store beside the model, computed in a thread as a daemon does it."""

from __future__ import annotations

import logging

import attrs
import pytest
import trio

from musterd.catalog.kinds import Catalog
from musterd.manager.duties.past_hours import LATE_SECONDS, SPREAD_SECONDS, PastHours
from musterd.manager.duties.small_steps import in_small_steps
from musterd.store.event_pages import position_at
from musterd.store.events import Event
from musterd.store.history import ALL, EndedJobs
from musterd.store.jobs import NewJob
from tests.contract.job_tools import ending, settle, take
from tests.contract.rigs import Rig
from tests.support.stage import kind, live_settings

HOUR_SECONDS = 3_600.0
JOBS = 40


async def hour_begun(rig: Rig) -> float:
    """When the hour began that goes on for long enough."""
    now = await rig.engine.health.now()
    if now % HOUR_SECONDS > HOUR_SECONDS - 20:
        await trio.sleep(HOUR_SECONDS - now % HOUR_SECONDS)
        now = await rig.engine.health.now()
    return now - now % HOUR_SECONDS


async def some_work(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a") for _ in range(JOBS)])
    for _ in range(JOBS // 10):
        claims = await take(rig.engine, workers=10)
        await settle(rig.engine, *(ending(claim) for claim in claims))
    await rig.engine.history.add([EndedJobs(ALL, JOBS)], [])


@attrs.define
class Clock:
    now: float


@pytest.mark.parametrize("candidate", ["", "{max_count = 2, default_count = 1}"])
async def test_an_hour_of_real_jobs(rig: Rig, candidate: str) -> None:
    begun = await hour_begun(rig)
    await some_work(rig)
    clock, ratios = Clock(begun - 1), list[float | None]()
    given = {"scaling__candidate": candidate} if candidate else {}
    past = PastHours(
        "default", rig.engine, live_settings(**given), lambda: Catalog([kind("a")]),
        lambda: clock.now, in_small_steps, ratios.append, logging.getLogger("tests.past_hours"),
    )  # fmt: skip
    clock.now = begun + HOUR_SECONDS + LATE_SECONDS + SPREAD_SECONDS
    await past.compare_if_due()
    (one,) = await rig.engine.journal.hours(None, None, 10)
    assert (one.at.timestamp(), one.skipped, one.attempts) == (begun, None, JOBS)
    assert one.was is not None
    assert one.present is not None
    assert one.present.worker_seconds == pytest.approx(2 * HOUR_SECONDS, abs=200)
    assert ratios == [one.error_ratio]
    assert one.error_ratio is not None
    assert one.error_ratio < 2
    assert (one.candidate is not None) == bool(candidate)
    if one.candidate is not None:
        assert one.candidate.worker_seconds == pytest.approx(HOUR_SECONDS, abs=200)
    clock.now += 60
    await past.compare_if_due()
    assert len(ratios) == 1


async def test_the_place_of_a_moment_in_the_log_is_found_row_by_row(rig: Rig) -> None:
    log = rig.engine.events
    for _ in range(9):
        await rig.engine.jobs.enqueue([NewJob("a") for _ in range(3)])
        rig.pass_time(10)
    newest = await log.order()
    events: list[Event] = []
    position, more = 0, True
    while more:
        page = await log.read(position, rows_max=2)
        assert len({one.at for one in page.events}) <= 2
        events += page.events
        position, more = page.position, page.more
    assert len(events) == 27
    for one in events:
        start = await position_at(log, one.at, newest)
        assert [other for other in events if other.id <= start and other.at >= one.at] == []
        assert [other for other in events if other.id > start and other.at < one.at] == []
