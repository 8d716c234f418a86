"""The duties of real nodes: who has them, what they tell of it, and what becomes of them."""

import attrs
import trio

from musterd.manager.duties import duty as names
from musterd.manager.events.node_events import ORDER_SECONDS_OTHERS
from musterd.store.lifecycle import JobState
from tests.support.stage import Node, Stage, settings_with, until

ALWAYS = sorted(set(names.DUTIES) - {names.SCHEDULES})
NIGHTLY = {"schedules__nightly__kind": '"noop"', "schedules__nightly__every_seconds": 10}


def held(node: Node) -> list[str]:
    return [name for name in names.DUTIES if node.tenancy().duties.holds(name)]


def exports_the_queue(node: Node) -> bool:
    return node.metrics.registry.get_sample_value(
        "musterd_queue_depth", {"tenant": "default"}
    ) is not None  # fmt: skip


async def told(stage: Stage, type_: str) -> list[tuple[str, str]]:
    await stage.store.engine.events.order()
    found = (await stage.store.engine.events.read(0)).events
    return [(one.data["node"], one.data["duty"]) for one in found if one.type == type_]


async def test_a_node_alone_has_all_and_says_so(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(1)
    assert held(node) == ALWAYS
    assert sorted(await told(stage, "duty.acquired")) == [("north", name) for name in ALWAYS]
    assert node.events.named("duties taken") == [{"duties": ",".join(ALWAYS)}]
    for name in ALWAYS:
        assert node.metric("duty_leader", tenant="default", duty=name) == 1
    assert node.metric("duty_leader", tenant="default", duty=names.SCHEDULES) == 0
    await trio.sleep(20)
    records = await stage.store.engine.duties.duties()
    assert {one.duty for one in records if one.node == "north" and one.runs} == set(ALWAYS)
    assert node.metric("duty_runs_total", tenant="default", duty=names.REAPING, result="ok") >= 10
    assert 0 < trio.current_time() - 20 <= 5
    assert (
        node.metric("duty_last_success_timestamp_seconds", tenant="default", duty=names.REAPING) > 0
    )


async def test_a_node_that_drains_gives_up_what_it_has(stage: Stage) -> None:
    north = await stage.start("north")
    south = await stage.start("south")
    await trio.sleep(60)
    both = held(north) + held(south)
    assert sorted(both) == ALWAYS
    assert min(len(held(north)), len(held(south))) >= 2
    mine = held(north)
    await north.stop()
    assert north.metric("duty_leader", tenant="default", duty=mine[0]) == 0
    assert [fields["reason"] for fields in north.events.named("duties released")][-1:] == [
        "the node drains"
    ]
    await until(lambda: held(south) == ALWAYS, 3)
    assert {("north", name) for name in mine} <= set(await told(stage, "duty.released"))


async def test_one_node_exports_the_gauges_of_the_queue(stage: Stage) -> None:
    nodes = [await stage.start(name) for name in ("north", "south", "west")]
    await trio.sleep(60)
    exporting = [node for node in nodes if exports_the_queue(node)]
    assert [names.METRICS in held(node) for node in nodes] == [node in exporting for node in nodes]
    (one,) = exporting
    await one.stop()
    assert not exports_the_queue(one)
    await until(lambda: sum(map(exports_the_queue, nodes)) == 1, 20)


async def test_who_answers_no_scrape_does_not_export(stage: Stage) -> None:
    node = await stage.start(http__listen="")
    await trio.sleep(10)
    assert held(node) == [name for name in ALWAYS if name != names.METRICS]


async def test_leases_of_the_dead_are_ended_though_their_node_reaped(stage: Stage) -> None:
    north = await stage.start("north")
    await trio.sleep(10)
    assert names.REAPING in held(north)
    ids = await stage.put("long", 2)
    await until(lambda: len(stage.running_now()) == 2)
    south = await stage.start("south")
    stage.store.away = True  # so that nothing of its end reaches the store
    north.kill()
    await north.ended.wait()
    stage.store.away = False
    died = trio.current_time()
    await until(lambda: names.REAPING in held(south), 10 + 2.5)
    await until(lambda: len(stage.running_now()) == 2, 40)
    assert trio.current_time() - died <= 30 + 2.5
    jobs = [await stage.job(job_id) for job_id in ids]
    assert {(one.node, one.attempt) for one in jobs} == {("south", 2)}


async def test_a_duty_whose_statement_fails_is_tried_later_and_harms_no_other(
    stage: Stage,
) -> None:
    node = await stage.start()
    stage.store.broken.add("events_trim")
    await trio.sleep(90)
    assert (
        2
        <= node.metric("duty_runs_total", tenant="default", duty=names.EVENTS, result="error")
        <= 9
    )
    assert node.metric("duty_runs_total", tenant="default", duty=names.REAPING, result="error") == 0
    found = {one.duty: one for one in await stage.store.engine.duties.duties()}
    assert found[names.EVENTS].errors >= 2
    assert found[names.EVENTS].last_error
    assert held(node) == ALWAYS
    stage.store.broken.clear()
    await trio.sleep(130)
    assert node.metric("duty_runs_total", tenant="default", duty=names.EVENTS, result="ok") >= 1


async def test_schedules_are_a_duty_of_those_who_have_some(stage: Stage) -> None:
    without = await stage.start("north")
    having = await stage.start("south", **NIGHTLY)
    await trio.sleep(60)
    assert names.SCHEDULES in held(having)
    assert names.SCHEDULES not in held(without)
    made = await stage.jobs()
    assert 5 <= len(made) <= 7
    assert {one.state for one in made} == {JobState.SUCCEEDED}
    plain = settings_with()
    having.tenancy().settings.replace(attrs.evolve(having.settings, schedules=plain.schedules))
    await trio.sleep(1)
    assert names.SCHEDULES not in held(having)
    await trio.sleep(60)
    assert len(await stage.jobs()) == len(made)


async def test_everyone_does_all_without_leases(stage: Stage) -> None:
    changes = {"duties__mode": "everyone", **NIGHTLY}
    nodes = [await stage.start(name, **changes) for name in ("north", "south")]
    await trio.sleep(65)
    assert all(held(node) == sorted(names.DUTIES) for node in nodes)
    assert await stage.store.engine.duties.duties() == []
    assert all(exports_the_queue(node) for node in nodes)
    assert 5 <= len(await stage.jobs()) <= 7  # a slot is a job, whoever looks
    await nodes[0].stop()
    assert held(nodes[0]) == []


async def test_what_a_node_without_the_duty_tells_is_put_in_order_too(stage: Stage) -> None:
    nodes = [await stage.start(name) for name in ("north", "south")]
    await trio.sleep(60)
    (other,) = [node for node in nodes if names.EVENTS not in held(node)]
    orders = stage.store.calls["events_order"]
    other.tenancy().node_events.news()
    await trio.sleep(ORDER_SECONDS_OTHERS - 1)
    assert stage.store.calls["events_order"] == orders
    await trio.sleep(2)
    assert stage.store.calls["events_order"] == orders + 1
