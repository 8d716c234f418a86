"""Each hour beside the model: by one node, once, for as long as there is something to compare."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from musterd.catalog.kinds import Catalog
from musterd.manager.duties.past_hours import LATE_SECONDS, SPREAD_SECONDS, PastHours
from musterd.store.compared_hours import ComparedHour
from musterd.store.errors import StoreError
from tests.support.stage import Events, Node, Stage, compute, live_settings, settings_with, until
from tests.support.stage_idle_scan import EPOCH

HOUR_SECONDS = 3_600.0
READ_SECONDS = LATE_SECONDS + SPREAD_SECONDS  # after its end an hour may be compared
EVERY_SECONDS = 17.3
BUSY: dict[str, Any] = {"workers__max_count": 3}
CHANGED = "its settings have not been in force for all of it"


async def hours(stage: Stage, tenant: str = "default") -> list[ComparedHour]:
    return await stage.stores[tenant].engine.journal.hours(None, None, 100)


def begun(found: list[ComparedHour]) -> list[float]:
    """In seconds since the start of the test, which begins with an hour."""
    return [one.at.timestamp() - EPOCH for one in found]


async def bursts(stage: Stage, seconds: float, tenant: str = "default") -> None:
    """Six jobs of five seconds at once, on three workers: half of them wait."""
    for _ in range(int(seconds / EVERY_SECONDS)):
        await trio.sleep(EVERY_SECONDS)
        await stage.put("slow", 6, tenant=tenant)
    await stage.all_ended()


@attrs.define(eq=False)
class Watched:
    """The comparison of a node whose clock is the test's, without the node."""

    stage: Stage
    settings: dict[str, Any] = attrs.field(factory=lambda: dict(BUSY))
    now: float = 0.0  # since the start of the test
    published: list[float | None] = attrs.field(factory=list[float | None])
    events: Events = attrs.field(factory=Events)
    past: PastHours = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        log = logging.getLogger("musterd.tests.past_hours")
        log.handlers, log.propagate = [self.events], False
        log.setLevel(logging.DEBUG)
        self.past = PastHours(
            "default", self.stage.store, live_settings(**self.settings),
            lambda: Catalog(self.stage.kinds.values()), lambda: EPOCH + self.now, compute,
            self.published.append, log,
        )  # fmt: skip

    async def look(self, now: float) -> None:
        self.now = now
        await self.past.compare_if_due()

    def reload(self, **settings: object) -> None:
        self.past.settings.replace(settings_with(**settings))


@pytest.fixture
async def lived(stage: Stage) -> Stage:
    """A store with three minutes of work in the first hour, whose node is gone."""
    node = await stage.start(**BUSY)
    await bursts(stage, 180)
    await trio.sleep(20)
    await node.stop()
    return stage


async def test_an_hour_is_compared_once_it_is_over(lived: Stage) -> None:
    watched = Watched(lived)
    await watched.look(600)
    await watched.look(HOUR_SECONDS + LATE_SECONDS - 1)
    assert await hours(lived) == []
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    (one,) = await hours(lived)
    assert begun([one]) == [0.0]
    assert (one.seconds, one.skipped) == (HOUR_SECONDS, None)
    assert one.attempts == 60
    assert one.was is not None
    assert one.was.wait_p95_seconds > 4
    assert one.present is not None
    assert one.present.worker_seconds is not None
    assert 2 * HOUR_SECONDS < one.present.worker_seconds < 2 * HOUR_SECONDS + 200
    assert one.error_ratio is not None
    assert one.error_ratio < 0.05
    assert watched.published == [None, one.error_ratio]


async def test_the_candidate_is_beside_what_was_in_force(lived: Stage) -> None:
    await Watched(lived, {**BUSY, "scaling__candidate": "{default_count = 1, max_count = 2}"}).look(
        HOUR_SECONDS + READ_SECONDS
    )
    (one,) = await hours(lived)
    assert one.present is not None
    assert one.candidate is not None
    assert one.candidate.wait_p95_seconds > one.present.wait_p95_seconds + 4
    assert one.candidate.worker_seconds is not None
    assert one.present.worker_seconds is not None
    assert one.candidate.worker_seconds < 0.6 * one.present.worker_seconds
    assert one.error_ratio is not None
    assert one.error_ratio < 0.05


async def test_it_is_read_once_whoever_looks(lived: Stage) -> None:
    first, second = Watched(lived), Watched(lived)
    await first.look(HOUR_SECONDS + READ_SECONDS)
    read, asked = lived.store.calls["events_read"], lived.store.calls["journal_hours"]
    for minute in range(30):
        await first.look(HOUR_SECONDS + READ_SECONDS + 60 * minute)
    assert lived.store.calls["journal_hours"] == asked
    await second.look(HOUR_SECONDS + READ_SECONDS)
    assert lived.store.calls["events_read"] == read
    assert second.published == first.published != [None]


async def test_hours_without_jobs_read_no_events_and_leave_nothing(lived: Stage) -> None:
    watched = Watched(lived)
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    read = lived.store.calls["events_read"]
    await watched.look(2 * HOUR_SECONDS + READ_SECONDS)
    assert begun(await hours(lived)) == [0.0]
    assert watched.published[-1] is None
    assert lived.store.calls["events_read"] == read


async def test_an_hour_in_which_the_settings_changed_is_not_compared(lived: Stage) -> None:
    watched = Watched(lived)
    await watched.look(60)
    watched.now = HOUR_SECONDS / 2
    watched.reload(workers__max_count=2)
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    (one,) = await hours(lived)
    assert one == ComparedHour(one.at, skipped=CHANGED)
    (said,) = watched.events.named("hour not compared with the model")
    assert said["why"] == CHANGED
    assert watched.published[-1] is None


async def test_settings_that_the_model_does_not_know_may_change(lived: Stage) -> None:
    watched = Watched(lived)
    await watched.look(60)
    watched.now = HOUR_SECONDS / 2
    watched.reload(**BUSY, log__level='"debug"')
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    assert [one.skipped for one in await hours(lived)] == [None]


async def test_a_node_that_began_within_the_hour_does_not_know_what_it_had(lived: Stage) -> None:
    watched = Watched(lived, now=1.0)
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    assert [one.skipped for one in await hours(lived)] == [CHANGED]


async def test_a_crew_that_no_decision_sizes_is_not_compared(lived: Stage) -> None:
    await Watched(lived, {"scaling__mode": '"shadow"'}).look(HOUR_SECONDS + READ_SECONDS)
    assert [one.skipped for one in await hours(lived)] == ["scaling.mode is shadow"]


async def test_what_takes_too_long_is_given_up_and_says_so(lived: Stage) -> None:
    watched = Watched(lived, {**BUSY, "duties__run_limit_seconds": 10})

    async def hang(steps: object, /) -> Any:
        del steps
        await trio.sleep_forever()

    watched.past.compute = hang
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    assert [one.skipped for one in await hours(lived)] == ["it took longer than 2 s"]


async def test_a_store_that_is_away_is_asked_again(lived: Stage) -> None:
    watched = Watched(lived)
    for broken in ("history_read", "events_read", "journal_write_hour"):
        lived.store.broken.add(broken)
        with pytest.raises(StoreError):
            await watched.look(HOUR_SECONDS + READ_SECONDS)
        lived.store.broken.clear()
    assert await hours(lived) == []
    assert watched.published == []
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    assert [one.attempts for one in await hours(lived)] == [60]


@pytest.mark.parametrize("settings", [{"scaling__journal_days": 0}, {"events__keep_hours": 1}])
async def test_without_a_journal_or_a_log_nothing_is_asked(
    lived: Stage, settings: dict[str, Any]
) -> None:
    watched = Watched(lived)
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    before = lived.store.calls.copy()
    watched.reload(**settings)
    await watched.look(2 * HOUR_SECONDS + READ_SECONDS)
    assert watched.published[-1] is None
    await watched.look(3 * HOUR_SECONDS + READ_SECONDS)
    assert len(watched.published) == 2
    assert lived.store.calls == before


async def test_a_fault_of_the_model_harms_no_statistics(lived: Stage) -> None:
    watched = Watched(lived)

    async def fail(steps: object, /) -> Any:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError(steps)

    watched.past.compute = fail
    await watched.look(HOUR_SECONDS + READ_SECONDS)
    why = "a fault of musterd: its log has the traceback"
    assert [one.skipped for one in await hours(lived)] == [why]
    assert watched.events.named("comparing an hour failed")


async def test_old_hours_are_deleted(lived: Stage) -> None:
    await Watched(lived).look(HOUR_SECONDS + READ_SECONDS)
    (young,) = await hours(lived)
    old = ComparedHour(young.at - timedelta(days=2), skipped="so")
    await lived.store.engine.journal.write_hour(old)
    assert len(await hours(lived)) == 2
    await lived.start(scaling__journal_days=1, retention__interval_seconds=5)
    await trio.sleep(30)
    assert await hours(lived) == [young]


def error_ratios(node: Node, tenant: str) -> list[float]:
    """None or one."""
    labels = {"tenant": tenant}
    found = node.metrics.registry.get_sample_value("musterd_model_error_ratio", labels)
    return [] if found is None else [found]


async def skip_to(stage: Stage, moment: float) -> None:
    """All machines sleep until then."""
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    clock.jump(EPOCH + moment - await stage.store.health.now())


async def test_a_node_compares_the_hours_of_each_tenant_and_the_next_goes_on(stage: Stage) -> None:
    tenants = ("default", "acme")
    await stage.add_tenants("acme")
    nodes = [await stage.start(name, **BUSY, tenants__acme__schema="a") for name in ("a", "b")]
    await skip_to(stage, HOUR_SECONDS + 1)
    async with trio.open_nursery() as nursery:
        for tenant in tenants:
            nursery.start_soon(bursts, stage, 100, tenant)
    await trio.sleep(20)
    await skip_to(stage, 2 * HOUR_SECONDS + READ_SECONDS)
    async with trio.open_nursery() as nursery:
        for tenant in tenants:  # so that nobody rests
            nursery.start_soon(bursts, stage, 60, tenant)
    for tenant in tenants:
        (one,) = await hours(stage, tenant)
        assert begun([one]) == [HOUR_SECONDS]
        assert one.error_ratio is not None
        assert sorted(error_ratios(node, tenant) for node in nodes) == [[], [one.error_ratio]]
    (other, holder) = sorted(nodes, key=lambda node: error_ratios(node, "default"))
    (one,) = await hours(stage)
    read = stage.store.calls["events_read"]
    await holder.stop()
    assert error_ratios(holder, "default") == []
    await until(lambda: error_ratios(other, "default") == [one.error_ratio], within_seconds=60)
    assert stage.store.calls["events_read"] == read
