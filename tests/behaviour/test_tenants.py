"""Many tenants on one node: who gets workers when, and that no tenant holds up another."""

from __future__ import annotations

from typing import Any

import trio

from musterd.manager.metrics.history import LOOK_SECONDS_RESTING as HISTORY_SECONDS_RESTING
from musterd.manager.tenancy.tenant_duties import RESTING
from musterd.manager.webhooks.postman import LOOK_SECONDS_RESTING
from musterd.store.jobs import JobFilter
from musterd.store.lifecycle import JobState
from musterd.store.nodes import RESTING_SECONDS
from tests.support.faulty_engine import Fault
from tests.support.stage import Node, Stage, until
from tests.support.stage_idle_scan import StageScan

JOB_SECONDS = 0.2  # of kind `report`


def head(node: Node, tenant: str = "default") -> tuple[int, int, int]:
    status = node.tenancy(tenant).status()
    return status.idle, status.busy, status.retiring


def total(node: Node) -> int:
    return sum(sum(head(node, name)) for name in node.daemon.tenancies)


async def succeeded(stage: Stage, tenant: str) -> int:
    counts = await stage.stores[tenant].engine.queue.counts()
    return counts.by_state[JobState.SUCCEEDED]


async def test_each_tenant_works_off_its_own_store(stage: Stage) -> None:
    await stage.add_tenants("acme")
    node = await stage.start(tenants__acme__schema="a")
    await stage.put("report", 3)
    await stage.put("report", 5, tenant="acme")
    await trio.sleep(5)
    assert (await succeeded(stage, "default"), await succeeded(stage, "acme")) == (3, 5)
    ended = {"kind": "report", "outcome": "succeeded"}
    assert node.metric("jobs_finished_total", tenant="acme", **ended) == 5
    assert node.metric("jobs_finished_total", tenant="default", **ended) == 3
    assert node.daemon.status().settled_total == 8


async def test_a_flood_does_not_delay_a_tenant_at_its_floor(stage: Stage) -> None:
    """10,000 jobs of one; the other's single job starts at once on its own worker."""
    await stage.add_tenants("acme", "flood")
    node = await stage.start(tenants__acme__schema="a", tenants__flood__schema="f")
    await stage.put("report", 10_000, tenant="flood")
    await until(lambda: head(node, "flood")[1] == 8 - 2 - 1)
    (job_id,) = await stage.put("report", tenant="acme")
    at = trio.current_time()
    await until(lambda: head(node, "acme")[1] == 1)
    assert trio.current_time() - at <= 0.02
    await trio.sleep(JOB_SECONDS + 0.1)
    record = await stage.stores["acme"].engine.jobs.get(job_id)
    assert record is not None
    assert record.state is JobState.SUCCEEDED


async def test_without_a_floor_a_tenant_waits_for_one_job_of_the_flood(stage: Stage) -> None:
    """Its need is seen within a scale interval; then a worker of the flood makes room."""
    await stage.add_tenants("acme", "flood")
    node = await stage.start(
        workers__max_count=4, workers__default_count=0, workers__scale_interval_ms=100,
        tenants__acme__workers__default_count=0, tenants__flood__workers__default_count=0,
    )  # fmt: skip
    await stage.put("report", 10_000, tenant="flood")
    await until(lambda: head(node, "flood")[1] == 4)
    await stage.put("report", tenant="acme")
    at = trio.current_time()
    await until(lambda: head(node, "acme")[1] == 1)
    assert trio.current_time() - at <= 0.1 + JOB_SECONDS + 0.05
    await until(lambda: head(node, "flood")[1] == 4, within_seconds=30)  # and it gets it back


async def test_the_nodes_bound_is_kept_at_every_moment(stage: Stage) -> None:
    names = ("red", "green", "blue")
    await stage.add_tenants(*names)
    floors: dict[str, Any] = {f"tenants__{name}__workers__default_count": 1 for name in names}
    node = await stage.start(
        workers__max_count=7, workers__default_count=1, scaling__stabilization_seconds=1,
        scaling__down_cooldown_seconds=0, **floors,
    )  # fmt: skip
    for second in range(60):
        await stage.put("report", 5 * (second % 5), tenant=names[second % 3])
        for _ in range(20):
            assert total(node) <= 7
            assert all(sum(head(node, name)) >= 1 for name in names)
            await trio.sleep(0.05)


async def serve_red_and_blue(stage: Stage, **changes: Any) -> Node:
    await stage.add_tenants("red", "blue")
    return await stage.start(tenants__red__schema="r", tenants__blue__schema="b", **changes)


async def test_two_floods_share_fairly_and_running_jobs_are_never_cut(stage: Stage) -> None:
    node = await serve_red_and_blue(stage, workers__max_count=10, workers__default_count=0)
    await stage.put("slow", 1_000, tenant="red")
    await until(lambda: head(node, "red")[1] == 9)
    await stage.put("slow", 1_000, tenant="blue")
    await until(lambda: (head(node, "red")[1], head(node, "blue")[1]) == (5, 5))
    records = await stage.stores["red"].engine.jobs.find(JobFilter(limit=2_000))
    assert {record.attempt for record in records} <= {0, 1}
    reasons = {decision.limited_by for decision in node.tenancy("red").decisions()}
    assert "shared" in reasons
    assert node.metric("scale_limited_total", reason="shared") > 0


async def test_idle_workers_beyond_the_floor_go_where_they_are_needed_at_once(
    stage: Stage,
) -> None:
    node = await serve_red_and_blue(stage, workers__max_count=8, scaling__stabilization_seconds=600)
    await stage.put("report", 100, tenant="red")
    await until(lambda: head(node, "red") == (5, 0, 0), within_seconds=60)  # kept for a while
    await stage.put("slow", 100, tenant="blue")
    took = await until(lambda: head(node, "blue")[1] == 5)
    assert took <= 1.1  # one scale interval


async def test_an_own_maximum_is_kept_and_named(stage: Stage) -> None:
    await stage.add_tenants("acme")
    node = await stage.start(tenants__acme__workers__max_count=2)
    await stage.put("slow", 100, tenant="acme")
    await until(lambda: len(node.tenancy("acme").decisions()) > 3)
    assert head(node, "acme") == (0, 2, 0)
    assert node.tenancy("acme").decisions()[-1].limited_by == "max"


async def test_a_store_that_is_away_holds_up_nobody_else(stage: Stage) -> None:
    await stage.add_tenants("acme", "lost")
    stage.stores["lost"].away = True
    node = await stage.start(tenants__acme__schema="a", tenants__lost__schema="l")
    await stage.put("report", tenant="acme")
    await trio.sleep(1)
    assert await succeeded(stage, "acme") == 1
    assert node.tenancy("lost").status().phase == "starting"
    await stage.put("report", tenant="lost")
    stage.stores["lost"].away = False
    await trio.sleep(8)
    assert await succeeded(stage, "lost") == 1
    assert node.events.named("tenant ready")[-1] == {"tenant": "lost"}


async def test_a_store_that_refuses_us_is_told_and_tried_again(stage: Stage) -> None:
    await stage.add_tenants("acme")
    stage.stores["acme"].faults["open"].append(Fault("misconfigured"))
    node = await stage.start(tenants__acme__schema="a")
    (told,) = node.events.named("tenant's store cannot be used")
    assert told["tenant"] == "acme"
    await until(lambda: node.tenancy("acme").status().phase == "running", within_seconds=40)


async def test_a_drain_ends_all_tenants_jobs_first(stage: Stage) -> None:
    await stage.add_tenants("acme")
    node = await stage.start(tenants__acme__schema="a")
    await stage.put("slow", tenant="acme")
    await until(lambda: head(node, "acme")[1] == 1)
    await node.stop()
    assert await succeeded(stage, "acme") == 1
    assert node.daemon.status().phase == "stopped"


async def test_a_second_stop_dismisses_the_crews_of_all(stage: Stage) -> None:
    await stage.add_tenants("acme")
    node = await stage.start(tenants__acme__schema="a")
    (job_id,) = await stage.put("long", tenant="acme")
    await until(lambda: head(node, "acme")[1] == 1)
    node.daemon.stop()
    at = trio.current_time()
    await node.stop()
    assert trio.current_time() - at < 1
    record = await stage.stores["acme"].engine.jobs.get(job_id)
    assert record is not None
    assert record.state is JobState.QUEUED


async def resting(stage: Stage, *, hears: bool = True, **schemas: str) -> tuple[Node, StageScan]:
    """A node with these tenants, which has long been idle, and what looks after them."""
    await stage.add_tenants(*schemas)
    scan = StageScan(stage.stores, hears=hears)
    stage.scans.append(scan)
    changes: dict[str, Any] = {f"tenants__{name}__schema": each for name, each in schemas.items()}
    node = await stage.start(**changes)
    await trio.sleep(100)
    return node, scan


async def test_idle_tenants_that_are_looked_after_ask_nothing_themselves(stage: Stage) -> None:
    _, scan = await resting(stage, acme="a")
    for store in stage.stores.values():
        store.calls.clear()
    before, checks_before = scan.looks, scan.checks
    await trio.sleep(600)
    for store in stage.stores.values():
        assert 600 / RESTING_SECONDS - 2 <= store.calls["beat"] <= 600 / RESTING_SECONDS + 2
        looks = store.calls["outbox_next_due_seconds"]
        assert looks <= 600 / (0.8 * LOOK_SECONDS_RESTING) + 2
        kept = sum(count for name, count in store.calls.items() if name.startswith("retention_"))
        assert kept <= 16
        duties = sum(store.calls[f"duties_{name}"] for name in ("look", "renew"))
        assert duties <= 600 / RESTING.heartbeat_seconds + 20
        seen = store.calls["history_look"]  # beside a count, the nodes and a trim
        assert seen <= 600 / (0.8 * HISTORY_SECONDS_RESTING) + 1
        hours = store.calls["journal_hours"]  # that were over, and a look at their history
        assert hours <= 1
        asked = store.calls["beat"] + looks + kept + duties + 4 * seen + store.calls["vitals_now"]
        asked += 2 * hours
        assert store.calls.total() - asked <= 10
    assert scan.looks == before  # hints are known to arrive
    assert 600 / 5 <= scan.checks - checks_before <= 600 / 4 + 2


async def test_tenants_whose_hints_never_arrive_are_looked_at_every_poll(stage: Stage) -> None:
    _, scan = await resting(stage, hears=False, acme="a")
    before = scan.looks
    await trio.sleep(600)
    assert 4 * 600 * 0.8 <= scan.looks - before <= 4 * 600 * 1.2


async def test_a_lost_hint_is_noticed_and_none_is_trusted_for_a_while(stage: Stage) -> None:
    node, scan = await resting(stage, acme="a", blue="b")
    stage.stores["acme"].deaf = True
    scan.believes_all = True  # the connection answers, though its notifications are lost
    await stage.put("report", tenant="acme")
    took = await until(lambda: head(node, "acme")[1] == 1, within_seconds=6)
    assert took > 1
    await trio.sleep(5)
    before = scan.looks
    await trio.sleep(40)
    assert scan.looks - before >= 4 * 40 * 0.8
    await trio.sleep(60)
    before = scan.looks
    await trio.sleep(40)
    assert scan.looks - before <= 4


async def test_a_tenant_with_news_is_looked_at_and_the_others_go_on_resting(stage: Stage) -> None:
    node, scan = await resting(stage, acme="a", blue="b")
    await stage.put("long", tenant="acme")
    await until(lambda: head(node, "acme")[1] == 1)
    scan.asked.clear()
    await trio.sleep(3)
    assert set(scan.asked) == {"acme"}


async def test_a_look_finds_work_that_no_hint_announced(stage: Stage) -> None:
    await stage.add_tenants("acme")
    stage.scans.append(StageScan(stage.stores))
    node = await stage.start(tenants__acme__schema="a")
    for store in stage.stores.values():
        store.deaf = True
    await trio.sleep(100)
    await stage.put("slow", 40, tenant="acme")
    took = await until(lambda: head(node, "acme")[1] >= 1)
    assert took <= 0.3
    await until(lambda: head(node, "acme")[1] == 6, within_seconds=2)  # and its crew grows


async def test_a_look_finds_the_leases_of_a_node_that_died(stage: Stage) -> None:
    await stage.add_tenants("acme")
    stage.scans.append(StageScan(stage.stores))
    left = await stage.start(
        "south", tenants__acme__schema="a", tenants__acme__workers__max_count=1
    )
    await trio.sleep(100)
    dying = await stage.start("west", tenants__acme__schema="a")
    await stage.put("long", 3, tenant="acme")
    await until(lambda: head(dying, "acme")[1] >= 1)
    dying.kill()
    await until(lambda: left.metric("leases_lost_total") >= 1, within_seconds=33)


async def test_the_duties_of_a_busy_tenant_change_hands_quickly(stage: Stage) -> None:
    """It is looked after as the idle ones are, and yet no lease of its duties is a long one."""
    await stage.add_tenants("acme")
    stage.scans.append(StageScan(stage.stores))
    both: dict[str, Any] = {"tenants__acme__schema": "a", "tenants__acme__workers__max_count": 4}
    dying = await stage.start("west", **both)
    await trio.sleep(100)
    await stage.put("long", 20, tenant="acme")
    await trio.sleep(60)
    assert dying.tenancy("acme").duties.holds("reaping")
    left = await stage.start("south", **both)
    await trio.sleep(5)
    dying.kill()
    own_lease_seconds = dying.settings.duties.lease_seconds
    reaping = left.tenancy("acme").duties
    took = await until(lambda: reaping.holds("reaping"), within_seconds=60)
    assert took <= own_lease_seconds + 6


async def test_a_delayed_job_starts_on_time_though_nobody_polls(stage: Stage) -> None:
    node, _ = await resting(stage, acme="a")
    await stage.put("slow", tenant="acme", delay_seconds=1_000)
    at = trio.current_time()
    await until(lambda: head(node, "acme")[1] == 1, within_seconds=1_100)
    assert 999.999 <= trio.current_time() - at <= 1_000.3
