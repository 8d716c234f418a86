"""Promises on a real node: what it wishes for, why, and what it says when one is broken."""

from __future__ import annotations

from typing import Any

import trio

from tests.support.stage import Node, Stage, kind, until

SHORT, LONG = kind("short", 5), kind("long", 4_000)


async def started(stage: Stage, **changes: Any) -> Node:
    stage.kinds = {one.name: one for one in (SHORT, LONG)}
    usual: dict[str, Any] = {
        "scaling__policy": '"latency"',
        "scaling__max_wait_seconds": 2,
        "workers__default_count": 1,
        "workers__max_count": 20,
    }
    return await stage.start(**(usual | changes))


async def test_bursts_of_short_jobs_need_one_worker_once_they_are_measured(stage: Stage) -> None:
    node = await started(stage)
    for _ in range(3):
        await stage.put("short", 250)
        await stage.all_ended(within_seconds=60)
    assert max(one.desired for one in node.journal) == 1
    assert all((one.raw_wish or 0) <= 1 for one in node.journal)
    assert node.metric("promise_seconds", kind="short") == 2
    assert node.metric("promise_broken_total", kind="short") == 0


async def test_long_jobs_get_what_keeps_their_promise(stage: Stage) -> None:
    node = await started(stage)
    await stage.put("long", 3)
    await stage.all_ended(within_seconds=60)
    await stage.put("long", 6)
    await stage.all_ended(within_seconds=60)
    assert max(one.desired for one in node.journal) == 6
    decided = [one for one in node.journal if one.because in ("drain", "demand")]
    assert decided


async def test_a_promise_that_a_bound_breaks_is_told(stage: Stage) -> None:
    node = await started(stage, workers__max_count=2)
    await stage.put("long", 12)
    await stage.all_ended(within_seconds=120)
    late = [one for one in node.journal if (one.slack_seconds or 0) < 0]
    assert late
    assert {one.limited_by for one in late if (one.raw_wish or 0) > 2} == {"max"}
    assert node.metric("promise_broken_total", kind="long") >= 8


async def test_under_demand_the_slack_of_a_promise_is_told_too(stage: Stage) -> None:
    node = await started(stage, scaling__policy='"demand"', workers__max_count=2)
    await stage.put("long", 12)
    await stage.all_ended(within_seconds=120)
    late = [one for one in node.journal if (one.slack_seconds or 0) < 0]
    assert late
    assert {one.because for one in node.journal} == {"demand"}
    assert {one.limited_by for one in late if (one.raw_wish or 0) > 2} == {"max"}


async def test_without_a_promise_the_line_is_not_read(stage: Stage) -> None:
    node = await started(stage, scaling__policy='"demand"', scaling__max_wait_seconds=0)
    await stage.put("long", 12)
    await trio.sleep(3)
    assert all(one.slack_seconds is None for one in node.journal)


async def test_how_long_a_hire_takes_is_measured(stage: Stage) -> None:
    node = await started(stage)
    supervisor = node.tenancy()._supervisor  # pyright: ignore[reportPrivateUsage] - what it goes by
    assert supervisor.policy.promises.horizon_seconds == 1
    crew = node.tenancy()._crew  # pyright: ignore[reportPrivateUsage] - a slow machine
    crew.hire_seconds = 0.25
    assert supervisor.policy.promises.horizon_seconds == 1.25
    await stage.put("long", 6)
    await until(lambda: node.size == 6)
    assert 0 < crew.hire_seconds < 0.25, "the clock stands still while these are hired"
