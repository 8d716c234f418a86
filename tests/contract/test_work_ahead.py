"""How much work nodes are wanted for: the same on both engines, whether nodes are there or not; and
what any program on PostgreSQL is told of it.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
import trio

from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.outbox import Delivery
from musterd.store.queue import WORK_BOUND
from tests.contract.job_tools import ending, put, settle, take, visit
from tests.contract.rigs import SCHEMA, PostgresRig, Rig

HORIZON_SECONDS = 30.0
URL = "https://example.com/hook"


async def work(rig: Rig) -> int:
    return await rig.engine.queue.work_ahead(HORIZON_SECONDS)


async def test_where_nothing_is_to_be_done_nobody_is_wanted(rig: Rig) -> None:
    assert await work(rig) == 0
    await rig.engine.jobs.enqueue([NewJob("held", hold=True), NewJob("late", delay_seconds=90)])
    await put(rig.engine, 0)
    (claim,) = await take(rig.engine)
    await settle(rig.engine, ending(claim))
    assert await work(rig) == 0


async def test_what_is_due_or_soon_due_or_in_hand_counts(rig: Rig) -> None:
    await put(rig.engine, 5, 0, 0, -3)
    soon, late = NewJob("soon", delay_seconds=20), NewJob("late", delay_seconds=60)
    await rig.engine.jobs.enqueue([soon, soon, late])
    assert await work(rig) == 6
    claims = await take(rig.engine, workers=3)
    assert await work(rig) == 6, "a job in hand is as much work as one that waits"
    await settle(rig.engine, ending(claims[0]))
    assert await work(rig) == 5
    rig.pass_time(31.0)
    assert await work(rig) == 6, "the late one is soon due by now"


async def test_whose_lease_has_run_out_counts_until_somebody_reaps(rig: Rig) -> None:
    (job_id,) = await put(rig.engine, 0)
    await take(rig.engine)
    rig.expire(job_id)
    assert await work(rig) == 1


async def test_a_paused_queue_wants_nodes_for_what_is_in_hand(rig: Rig) -> None:
    await put(rig.engine, 0, 0, 0)
    await take(rig.engine)
    await rig.engine.queue.pause("ann")
    assert await work(rig) == 1
    await rig.engine.queue.resume()
    assert await work(rig) == 3


async def test_parked_jobs_want_one_who_looks_whether_there_is_room(rig: Rig) -> None:
    await put(rig.engine, 0, 0, 0, kind="narrow")
    (claim,) = (await visit(rig.engine, 3, caps=(("narrow", 1),))).claims
    assert await work(rig) == 1
    await settle(rig.engine, ending(claim))
    assert await work(rig) >= 1
    await rig.engine.queue.pause("ann")
    assert await work(rig) == 0


async def test_jobs_behind_another_of_their_target_wait_for_that_one(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("report", target="shop-1")] * 4)
    (claim,) = (await visit(rig.engine, 4)).claims
    assert await work(rig) == 1
    await settle(rig.engine, ending(claim))
    assert await work(rig) == 1, "the next of them"


async def test_a_halted_target_wants_nobody(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("report", target="shop-1")] * 4)
    (claim,) = (await visit(rig.engine, 4)).claims
    await settle(rig.engine, ending(claim, JobState.FAILED))
    await visit(rig.engine, 4)
    assert await work(rig) == 0
    await rig.engine.control.apply(Action.CLEAR, claim.id)
    assert await work(rig) == 1


async def test_a_webhook_that_is_to_be_sent_wants_somebody_who_sends_it(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("report", webhook=URL)])
    (claim,) = await take(rig.engine)
    await settle(rig.engine, ending(claim))
    assert await work(rig) == 1
    (message,) = await rig.engine.outbox.take(uuid4(), 1, 45.0)
    busy = Delivery(message.id, message.token, False, 503, "busy", 90.0)
    await rig.engine.outbox.settle([busy])
    assert await work(rig) == 0, "the next try is far off"
    rig.pass_time(61.0)
    assert await work(rig) == 1


async def test_what_waits_is_counted_up_to_a_bound(rig: Rig) -> None:
    more = WORK_BOUND + 50
    for priority in (1, 0):
        jobs = [NewJob("report", priority=priority)] * (more // 2)
        await rig.engine.jobs.enqueue(jobs)
    assert await work(rig) == WORK_BOUND
    await take(rig.engine, workers=20)
    assert await work(rig) == WORK_BOUND + 20


@pytest.mark.parametrize(("jobs", "nodes"), [(0, 0), (1, 1), (8, 1), (9, 2), (81, 11)])
async def test_nodes_are_counted_whole(postgres_rig: PostgresRig, jobs: int, nodes: int) -> None:
    await put(postgres_rig.engine, *[0] * jobs)
    assert postgres_rig.raw("select musterd.nodes_desired(8)") == [(nodes,)]
    assert postgres_rig.raw("select musterd.nodes_desired(jobs_per_node => 8)") == [(nodes,)]
    assert postgres_rig.raw("select musterd.nodes_desired(2147483647)") == [(min(1, jobs),)]


async def test_how_far_it_looks_ahead_can_be_said(postgres_rig: PostgresRig) -> None:
    await postgres_rig.engine.jobs.enqueue([NewJob("soon", delay_seconds=100)])
    assert postgres_rig.raw("select musterd.nodes_desired(8)") == [(0,)]
    assert postgres_rig.raw("select musterd.nodes_desired(8, horizon_seconds => 120)") == [(1,)]
    assert postgres_rig.raw("select musterd.nodes_desired(8, 0)") == [(0,)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("0", "jobs_per_node: found 0, wanted a whole number, 1 or more"),
        ("-8", "jobs_per_node: found -8, wanted a whole number, 1 or more"),
        ("null", "jobs_per_node: found null, wanted a whole number, 1 or more"),
        ("8, -1", "horizon_seconds: found -1, wanted 0 to 86400 seconds"),
        ("8, 'NaN'", "horizon_seconds: found NaN, wanted 0 to 86400 seconds"),
        ("8, null", "horizon_seconds: found null, wanted 0 to 86400 seconds"),
    ],
)
async def test_a_number_that_makes_no_sense_is_refused(
    postgres_rig: PostgresRig, arguments: str, said: str
) -> None:
    await trio.lowlevel.checkpoint()
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        postgres_rig.raw(f"select musterd.nodes_desired({arguments})")
    assert refused.value.diag.message_primary == said


def pages_read(rig: PostgresRig) -> int:
    """By a session that nobody has told how to plan."""
    with psycopg.connect(rig.url) as connection:
        connection.execute("select musterd.nodes_desired(8)")  # what it reads of the catalog
        asked = "explain (analyze, buffers, format json) select musterd.nodes_desired(8)"
        row: Any = connection.execute(asked.encode()).fetchone()
    root = row[0][0]["Plan"]
    return int(root["Shared Hit Blocks"] + root["Shared Read Blocks"])


async def test_it_costs_the_same_however_long_the_queue_is(postgres_rig: PostgresRig) -> None:
    """Each job by itself, because neighbours differ in kind; as many again are not yet due."""
    fill = """set session_replication_role = replica;
        insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
        select n % 3, clock_timestamp() + interval '1 s' * case n % 2 when 0 then -n else n end,
               {start} + n, {start} + n, 'a' || n % 2
        from generate_series(4000, {count} + 3999) n"""
    postgres_rig.tampered = True
    await trio.lowlevel.checkpoint()
    postgres_rig.raw(fill.format(schema=SCHEMA, start=0, count=40_000))
    assert postgres_rig.raw("select musterd.nodes_desired(1)") == [(WORK_BOUND,)]
    few = pages_read(postgres_rig)
    postgres_rig.raw(fill.format(schema=SCHEMA, start=1_000_000, count=200_000))
    many = pages_read(postgres_rig)
    assert few < 10 * WORK_BOUND / 8, "a stretch lies beside others on its page"
    assert many < 1.5 * few
