"""An idle node listens, where hints are known to arrive, and asks where they are not."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast
from uuid import UUID

import attrs
import pytest
import trio

from musterd.store.queue import IdleCheck
from musterd.store.wrapped import wrapped
from musterd.workers.idleness import CHECK_SECONDS_MAX
from tests.support.faulty_engine import FaultyEngine
from tests.support.idle_checks import idle_check_of
from tests.support.stage import Node, Stage, open_stage, until

SETTLED_SECONDS = 10.0  # an idle node has come to rest by then
POLL_SECONDS = 0.3  # with its jitter
SOON_SECONDS = 0.05


@attrs.define
class IdleChecks:
    """`mute`: nothing comes back."""

    store: FaultyEngine
    mute: bool = False

    async def check(self, me: UUID) -> IdleCheck | None:
        await trio.lowlevel.checkpoint()
        return None if self.mute else await idle_check_of(self.store.engine, me)


class Hearing(Stage):
    """A stage whose nodes have idle checks."""

    def __init__(self, store: FaultyEngine, nursery: trio.Nursery) -> None:
        super().__init__(store, nursery)
        self.idle_checks = IdleChecks(store)
        through = store._pass_on  # pyright: ignore[reportPrivateUsage] - where calls are counted
        store.idle = cast(Any, wrapped)(self.idle_checks, "idle", through)


@pytest.fixture
async def stage() -> AsyncGenerator[Hearing]:
    async with open_stage(Hearing) as opened:
        yield opened


async def rested(stage: Hearing, **changes: Any) -> Node:
    node = await stage.start(**changes)
    await trio.sleep(SETTLED_SECONDS)
    return node


async def claims_in(stage: Hearing, seconds: float) -> int:
    before = stage.store.calls["claim"]
    await trio.sleep(seconds)
    return stage.store.calls["claim"] - before


async def pick_up_seconds(node: Node, job_id: int) -> float:
    """How long from now until it has begun."""
    return await until(lambda: any(worker.job_id == job_id for worker in node.workers))


async def lose_a_hint(stage: Hearing) -> int:
    """Puts a job that nobody is told of."""
    stage.store.deaf = True
    (job_id,) = await stage.put("long")
    return job_id


async def test_an_idle_node_that_hears_does_not_poll(stage: Hearing) -> None:
    await rested(stage)
    before = stage.store.calls["outlook_look"]
    observed = stage.store.calls["observe"] + stage.store.calls["reap"]
    assert await claims_in(stage, 100) == 0
    looks = stage.store.calls["outlook_look"] - before
    assert 100 / CHECK_SECONDS_MAX <= looks <= 100 / (0.9 * CHECK_SECONDS_MAX) + 1
    assert stage.store.calls["observe"] + stage.store.calls["reap"] == observed


async def test_a_node_without_an_idle_check_polls(stage: Hearing) -> None:
    stage.idle_checks.mute = True
    await rested(stage)
    assert await claims_in(stage, 100) >= 100 / POLL_SECONDS


async def test_a_hint_ends_the_rest_at_once(stage: Hearing) -> None:
    node = await rested(stage)
    (job_id,) = await stage.put("long")
    assert await pick_up_seconds(node, job_id) < SOON_SECONDS


async def test_while_anybody_has_work_the_others_poll(stage: Hearing) -> None:
    await rested(stage)
    await stage.put("long")
    await trio.sleep(SETTLED_SECONDS)
    assert await claims_in(stage, 30) >= 30 / POLL_SECONDS


async def test_a_lost_hint_costs_one_idle_check_and_then_none_is_relied_on(stage: Hearing) -> None:
    node = await rested(stage)
    first = await lose_a_hint(stage)
    assert await pick_up_seconds(node, first) <= CHECK_SECONDS_MAX + POLL_SECONDS
    await trio.sleep(1)
    (second,) = await stage.put("long")
    assert await pick_up_seconds(node, second) <= POLL_SECONDS


async def test_a_connection_that_dies_without_a_word_is_found_out(stage: Hearing) -> None:
    await rested(stage)
    stage.idle_checks.mute = True
    await trio.sleep(CHECK_SECONDS_MAX)
    assert await claims_in(stage, 30) >= 30 / POLL_SECONDS


async def test_a_delayed_job_ends_the_rest_when_it_is_due(stage: Hearing) -> None:
    node = await rested(stage)
    (job_id,) = await stage.put("long", delay_seconds=33.3)
    await trio.sleep(33.3)
    assert await pick_up_seconds(node, job_id) < SOON_SECONDS


async def test_more_frequent_polls_are_spared_in_the_same_measure(stage: Hearing) -> None:
    await rested(stage, workers__poll_interval_ms=50)
    before = stage.store.calls["outlook_look"]
    assert await claims_in(stage, 30) == 0
    assert stage.store.calls["outlook_look"] - before >= 30


async def test_a_lease_that_another_begins_cannot_run_out_unseen(stage: Hearing) -> None:
    lease_seconds = 4.0
    await rested(stage, workers__lease_timeout_seconds=lease_seconds)
    before = stage.store.calls["outlook_look"]
    await trio.sleep(30)
    assert stage.store.calls["outlook_look"] - before >= 30 / (lease_seconds / 4)
