"""`GET /schedules`: what is configured, where it stands, what comes next."""

from datetime import datetime, timedelta

from musterd.store.jobs import NewJob
from musterd.store.schedules import Firing
from tests.support.web_scene import SCHEDULES, serving


async def test_every_schedule_is_shown_by_name() -> None:
    async with serving() as web:
        made = await web.engine.schedules.fire(Firing("pulse", None, "noop", "{}", 0, None))
        found = (await web.get("/schedules")).json["schedules"]
    assert [one["name"] for one in found] == sorted(SCHEDULES)
    nightly, pulse = found
    assert (nightly["cron"], nightly["timezone"], nightly["every_seconds"]) == (
        "30 2 * * *", "UTC", None,
    )  # fmt: skip
    assert (pulse["cron"], pulse["timezone"], pulse["every_seconds"]) == (None, None, 90)
    assert (pulse["fired"], pulse["last_job_id"], pulse["last_job_state"]) == (
        1, made.job_id, "queued",
    )  # fmt: skip
    first, second, third = (datetime.fromisoformat(slot) for slot in pulse["next"])
    assert third - second == second - first == timedelta(seconds=90)
    assert first.timestamp() % 90 == 0
    assert 0 < pulse["seconds_until_next"] <= 90


async def test_a_paused_one_has_no_next_slot() -> None:
    async with serving() as web:
        await web.engine.schedules.steer("pause", "pulse")
        _, pulse = (await web.get("/schedules")).json["schedules"]
    assert pulse["paused_at"] is not None
    assert (pulse["next"], pulse["seconds_until_next"]) == ([], None)


async def test_looking_changes_no_job() -> None:
    async with serving() as web:
        await web.engine.jobs.enqueue([NewJob("noop")])
        await web.get("/schedules")
        assert (await web.engine.queue.counts()).enqueued_total == 1
        assert (await web.get("/schedules", method="POST")).status == 405
