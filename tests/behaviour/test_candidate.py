"""Scaling that is tried first: candidates, shadow and hold, on a real node."""

from __future__ import annotations

from typing import Any

import trio

from tests.support.reloading import reload
from tests.support.stage import Stage, until

LATENCY: dict[str, Any] = {
    "scaling__candidate": '{policy = "latency", max_wait_seconds = 30, default_count = 1}'
}
IN_FORCE: dict[str, Any] = {
    "scaling__policy": '"latency"', "scaling__max_wait_seconds": 30, "workers__default_count": 1,
    "workers__max_count": 20,
}  # fmt: skip


async def test_a_candidate_is_told_beside_and_never_acts(stage: Stage) -> None:
    node = await stage.start(workers__max_count=20, **LATENCY)
    await stage.put("report", 3)
    await stage.all_ended()
    await stage.put("report", 60)
    await trio.sleep(1.5)
    last = node.journal[-1]
    assert (last.policy, last.desired, last.because) == ("demand", 20, "demand")
    assert last.candidate is not None
    assert (last.candidate["because"], last.candidate["desired"]) == ("drain", 1)
    assert node.metric("workers_desired_candidate", tenant="default") == 1
    assert node.size == 20


async def test_a_candidate_is_put_in_force_by_one_reload(stage: Stage) -> None:
    node = await stage.start(workers__max_count=20, scaling__stabilization_seconds=1, **LATENCY)
    await stage.put("report", 40)
    await stage.all_ended()
    assert max(one.desired for one in node.journal) == 20
    imagined = node.journal[-1].candidate
    await reload(node, scaling__stabilization_seconds=1, **IN_FORCE)
    await until(lambda: node.journal[-1].policy == "latency", 0.5)
    await until(lambda: node.size == 1)
    await stage.put("report", 40)
    await stage.all_ended()
    later = [one for one in node.journal if one.policy == "latency" and one.due]
    assert later
    assert {one.desired for one in later} == {1}
    assert imagined is not None
    assert all(one.candidate is None for one in later)
    assert not [one for one in node.metrics.rendering._render().split() if b"candidate{" in one]  # pyright: ignore[reportPrivateUsage]


async def test_in_shadow_nobody_is_hired_though_it_is_decided(stage: Stage) -> None:
    node = await stage.start(scaling__mode='"shadow"')
    await stage.put("slow", 6)
    await trio.sleep(2.5)
    assert node.size == 2
    assert [one.desired for one in node.journal] == [6, 6]
    assert [one.limited_by for one in node.journal] == ["shadow", "shadow"]
    assert not any(one.hired for one in node.journal)
    await reload(node)
    await until(lambda: node.size == 6, 0.5)


async def test_a_held_crew_stays_and_leaves_when_it_is_held_no_longer(stage: Stage) -> None:
    node = await stage.start(workers__max_count=20)
    await stage.put("slow", 9)
    await until(lambda: node.size == 9)
    await reload(node, workers__max_count=20, scaling__mode='"hold"')
    await stage.all_ended()
    await trio.sleep(60)
    assert node.size == 9
    assert (node.journal[-1].raw_wish, node.journal[-1].limited_by) == (0, "hold")
    await stage.put("slow", 15)
    await trio.sleep(2)
    assert node.size == 9
    await reload(node, workers__max_count=20)
    await until(lambda: node.size == 15, 0.5)
