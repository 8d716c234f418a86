"""Bounds by the clock on a real node. Its wall clock begins at the stage's epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import trio

from tests.support.stage import Stage, until
from tests.support.stage_idle_scan import EPOCH, StageScan


def beginning_in(seconds: float, for_minutes: float, **counts: int) -> dict[str, Any]:
    start = datetime.fromtimestamp(EPOCH + trio.current_time(), UTC) + timedelta(seconds=seconds)
    line = f"{start.second} {start.minute} {start.hour} * * *"
    keys = {"name": '"day"', "from": f'"{line}"', "for_minutes": for_minutes, **counts}
    table = ", ".join(f"{key} = {value}" for key, value in keys.items())
    return {"scaling__hours": f"[{{{table}}}]"}


async def test_the_floor_of_hours_comes_and_goes(stage: Stage) -> None:
    node = await stage.start(**beginning_in(30, 2, default_count=5))
    await trio.sleep(28)
    assert node.size == 2
    await until(lambda: node.size == 5, 5)
    assert node.journal[-1].limited_by == "hours:day"
    status = node.tenancy().status()
    assert (status.default_count, status.max_count) == (5, 8)
    assert node.metric("scale_limited_total", reason="hours") > 0
    await trio.sleep(100)
    assert node.size == 5
    await until(lambda: node.size == 2, 40)
    assert node.journal[-1].limited_by == "min"


async def test_the_ceiling_of_hours_lets_running_jobs_end(stage: Stage) -> None:
    node = await stage.start(**beginning_in(10, 1, default_count=0, max_count=3))
    await trio.sleep(8)
    await stage.put("slow", 8)
    await until(lambda: node.size == 8, 3)
    await until(lambda: node.size == 3, 4)
    assert node.journal[-1].limited_by == "hours:day"
    await stage.all_ended()
    assert [one.attempt for one in await stage.jobs()] == [1] * 8


async def test_a_crew_at_rest_wakes_when_hours_begin(stage: Stage) -> None:
    await stage.add_tenants("acme")
    stage.scans.append(StageScan(stage.stores))
    node = await stage.start(tenants__acme__schema="a", **beginning_in(300, 10, default_count=3))
    await trio.sleep(290)
    assert node.tenancy("acme").status().idle == 1
    await until(lambda: node.tenancy("acme").status().idle == 3, 15)
