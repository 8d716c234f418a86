"""Kinds with a cap: never more of their jobs leased than it says, and nobody waits behind them."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.leases import (
    Caps,
    Claim,
    Exchange,
    ReapRequest,
    ReapRule,
)
from musterd.store.lifecycle import Action, JobState
from tests.contract.job_tools import ending, ids, put, settle, state_of, take, visit
from tests.contract.rigs import PostgresRig, Rig, closing_engine, opened
from tests.fix_postgres import FreshDatabase

CAPS: Caps = (("narrow", 4),)
ONE: Caps = (("narrow", 1),)
LOCK_CAPS = b"select musterd.take_turn()"
TAKE_THREE = b"""
    with taken as (delete from musterd.ready where last_id <= 3 returning kind)
    insert into musterd.leases (token, kind, node, claimed_at, expires_at, heartbeat_at, jobs, span)
    select gen_random_uuid(), min(kind), 'south', now(), now() + interval '1 min', now(),
           '{[1,4)}', '[1,4)'
    from taken
"""
WAITING = "select 1 from pg_locks where not granted"
LEASED = "select count(*) from {table} where kind = 'narrow' and state in ('assigned', 'running')"


async def take_all(engine: Engine, workers: int, caps: Caps = CAPS) -> tuple[list[Claim], int]:
    """Looks again for as long as jobs are parked; gives the claims, and how many looks it took."""
    found: list[Claim] = []
    for looks in range(1, 100):
        exchange = await visit(engine, workers - len(found), caps=caps)
        found += exchange.claims
        if len(found) == workers or not exchange.parked:
            return found, looks
    pytest.fail("it went on parking")


def parked(rig: Rig) -> list[int]:
    return [job_id for (job_id,) in rig.raw(f"select id from {rig.table} where parked order by id")]


async def test_no_more_are_claimed_than_the_cap_says(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 10, kind="narrow")
    exchange = await visit(rig.engine, 7, caps=CAPS)
    assert ids(exchange.claims) == made[:4]
    assert exchange.parked >= 3
    assert (await take_all(rig.engine, 7))[0] == []
    assert parked(rig) == made[4:]


async def test_a_claim_that_parks_nothing_says_so(rig: Rig) -> None:
    await put(rig.engine, *[0] * 4, kind="narrow")
    exchange = await visit(rig.engine, 9, caps=CAPS)
    assert (len(exchange.claims), exchange.parked) == (4, 0)
    assert (await visit(rig.engine, 9, caps=CAPS)).parked == 0


async def test_what_was_claimed_ahead_counts_too(rig: Rig) -> None:
    await put(rig.engine, *[0] * 6, kind="narrow")
    assert len((await visit(rig.engine, caps=CAPS, ahead=5)).claims) == 4


async def test_a_kind_without_a_cap_is_not_held_up(rig: Rig) -> None:
    await put(rig.engine, *[5] * 10, kind="narrow")
    wide = await put(rig.engine, *[0] * 10, kind="wide")
    found, _ = await take_all(rig.engine, 12)
    assert ids(found)[4:] == wide[:8]


async def test_two_caps_are_kept_beside_each_other(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob(kind) for kind in ("narrow", "tight", "wide")] * 5)
    caps = (("narrow", 2), ("tight", 1), ("absent", 3))
    found, _ = await take_all(rig.engine, 15, caps)
    kinds = [one.kind for one in found]
    assert [kinds.count(kind) for kind in ("narrow", "tight", "wide")] == [2, 1, 5]


async def test_the_order_holds_for_all_that_may_run(rig: Rig) -> None:
    low, wide_low, high = await rig.engine.jobs.enqueue(
        [NewJob("narrow"), NewJob("wide"), NewJob("narrow", priority=3)]
    )
    first, _ = await take_all(rig.engine, 3, ONE)
    assert ids(first) == [high, wide_low]
    (higher,) = await put(rig.engine, 7, kind="narrow")
    (wide,) = await put(rig.engine, 5, kind="wide")
    assert ids((await take_all(rig.engine, 3, ONE))[0]) == [wide]
    assert parked(rig) == [low, higher]
    (second,) = (await visit(rig.engine, 3, [ending(first[0])], ONE)).claims
    assert second.id == higher
    (third,) = (await visit(rig.engine, 3, [ending(second)], ONE)).claims
    assert third.id == low


async def test_room_that_is_made_is_used_by_the_claim_of_the_same_visit(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 12, kind="narrow")
    held, _ = await take_all(rig.engine, 12)
    order = ids(held)
    while held:
        settled = held[:2]
        exchange = await visit(rig.engine, 2, [ending(one) for one in settled], CAPS)
        held = held[2:] + exchange.claims
        order += ids(exchange.claims)
        assert len(held) == min(4, 12 - len(order) + len(held))
    assert order == made


async def test_many_jobs_at_their_cap_are_soon_out_of_the_way(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("narrow", priority=1)] * 20_000)
    wide = await put(rig.engine, *[0] * 3, kind="wide")
    found, looks = await take_all(rig.engine, 7)
    assert ids(found)[4:] == wide
    assert looks <= 30
    (late,) = await put(rig.engine, 0, kind="wide")
    assert ids((await visit(rig.engine, 1, caps=CAPS)).claims) == [late]


async def test_parked_jobs_are_queued_but_not_due(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 10, kind="narrow")
    assert (await rig.engine.queue.observe(100)).parked is False
    await take_all(rig.engine, 10)
    view = await rig.engine.queue.observe(100)
    assert (view.due, view.oldest_due_seconds, view.parked) == (0, 0, True)
    counts = await rig.engine.queue.counts()
    assert (counts.by_state[JobState.QUEUED], counts.by_state[JobState.RUNNING]) == (6, 4)
    assert counts.due == 0
    assert await rig.engine.queue.next_due_seconds() is None
    assert await state_of(rig.engine, made[-1]) is JobState.QUEUED


async def test_a_lost_lease_makes_room(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 3, kind="narrow")
    assert ids((await take_all(rig.engine, 3, ONE))[0]) == made[:1]
    rig.pass_time(60)
    assert (await visit(rig.engine, 3, caps=ONE)).claims == []  # not before it is reaped
    rules = {"narrow": ReapRule("fail", 9, capped=True)}
    assert len(await rig.engine.leases.reap(ReapRequest(rules, ReapRule("requeue", 9), 10))) == 1
    assert ids((await visit(rig.engine, 3, caps=ONE)).claims) == made[1:2]


async def test_what_was_parked_for_a_cap_that_is_gone_comes_back(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 3, kind="narrow")
    await take_all(rig.engine, 3, ONE)
    assert await take(rig.engine, workers=3) == []
    rules = {"narrow": ReapRule("requeue", 9, capped=True), "wide": ReapRule("requeue", 9)}
    await rig.engine.leases.reap(ReapRequest(rules, ReapRule("requeue", 9), 10))
    assert parked(rig) == made[1:]
    rules["narrow"] = ReapRule("requeue", 9)
    await rig.engine.leases.reap(ReapRequest(rules, ReapRule("requeue", 9), 10))
    assert ids(await take(rig.engine, workers=3)) == made[1:]


@pytest.mark.parametrize("action", [Action.CANCEL, Action.PAUSE])
async def test_a_parked_job_can_be_stopped(rig: Rig, action: Action) -> None:
    first, second, third = await put(rig.engine, 0, 0, 0, kind="narrow")
    (held,), _ = await take_all(rig.engine, 3, ONE)
    assert held.id == first
    assert (await rig.engine.control.apply(action, second)).allowed
    assert parked(rig) == [third]
    assert ids((await visit(rig.engine, 3, [ending(held)], ONE)).claims) == [third]


async def test_a_paused_job_that_was_parked_waits_in_its_order_when_resumed(rig: Rig) -> None:
    first, second = await put(rig.engine, 0, 0, kind="narrow")
    (held,), _ = await take_all(rig.engine, 2, ONE)
    await rig.engine.control.apply(Action.PAUSE, second)
    await rig.engine.control.apply(Action.RESUME, second)
    assert (await take_all(rig.engine, 2, ONE))[0] == []
    assert parked(rig) == [second]
    assert ids((await visit(rig.engine, 2, [ending(held)], ONE)).claims) == [second]
    assert first == held.id


async def test_a_job_that_is_tried_again_leaves_its_room_to_the_next(rig: Rig) -> None:
    first, second = await put(rig.engine, 0, 0, kind="narrow")
    (held,), _ = await take_all(rig.engine, 2, ONE)
    again = ending(held, JobState.QUEUED, delay_seconds=30.0)
    assert ids((await visit(rig.engine, 2, [again], ONE)).claims) == [second]
    rig.pass_time(29)
    assert (await take_all(rig.engine, 2, ONE))[0] == []
    assert parked(rig) == []
    rig.pass_time(2)
    await take_all(rig.engine, 2, ONE)
    assert parked(rig) == [first]


async def test_a_paused_queue_gives_back_no_parked_job(rig: Rig) -> None:
    made = await put(rig.engine, 0, 0, kind="narrow")
    (held,), _ = await take_all(rig.engine, 2, ONE)
    await rig.engine.queue.pause("anna")
    exchange = await visit(rig.engine, 2, [ending(held)], ONE)
    assert (exchange.claims, exchange.parked) == ([], 0)
    assert parked(rig) == made[1:]
    await rig.engine.queue.resume()
    assert ids((await visit(rig.engine, 2, caps=ONE)).claims) == made[1:]


async def test_many_engines_at_once_never_go_over_the_cap(shared: Rig) -> None:
    made = await shared.engine.jobs.enqueue([NewJob("narrow")] * 150)
    wide = await shared.engine.jobs.enqueue([NewJob("wide")] * 50)

    async def claim(engine: Engine) -> list[Claim]:
        return (await visit(engine, 3, caps=CAPS)).claims

    await check_drain(shared, made + wide, claim, LEASED, lambda one: one.kind == "narrow")


async def check_drain(
    shared: Rig,
    made: list[int],
    claim: Callable[[Engine], Awaitable[list[Claim]]],
    leased: str,
    counts: Callable[[Claim], bool] = lambda _: True,
) -> None:
    """Sixteen nodes do these jobs, and no more than four of those that count at any time: as the
    nodes know it, and by what the store says is leased.
    """
    seen: list[list[tuple[Any, ...]]] = []
    taken: list[int] = []
    held: set[int] = set()

    async def work(engine: Engine) -> None:
        while len(taken) < len(made):
            claims = await claim(engine)
            held.update(one.id for one in claims if counts(one))
            assert len(held) <= 4
            taken.extend(ids(claims))
            held.difference_update(ids(claims))
            # Not with the next claim: the room is anyone's.
            await settle(engine, *(ending(one) for one in claims))

    async with sixteen(shared) as engines, trio.open_nursery() as nursery:
        for engine in engines:
            nursery.start_soon(work, engine)
        while len(taken) < len(made):
            asked = leased.format(table=shared.table)
            seen.append(await trio.to_thread.run_sync(shared.raw, asked))
    assert 0 < max(count for ((count,),) in seen) <= 4
    assert sorted(taken) == made
    assert (await shared.engine.queue.counts()).by_state[JobState.SUCCEEDED] == len(made)


@asynccontextmanager
async def sixteen(rig: Rig) -> AsyncGenerator[list[Engine]]:
    """Open engines on the same store."""
    with trio.fail_after(60):
        async with AsyncExitStack() as stack:
            engines = [
                await stack.enter_async_context(closing_engine(rig.another())) for _ in range(16)
            ]
            for engine in engines:
                await engine.open()
            yield engines


async def test_a_claim_waits_for_another_and_counts_what_it_took(
    fresh_database: FreshDatabase,
) -> None:
    url = fresh_database()
    found: list[Exchange] = []
    async with opened(PostgresRig(url)) as rig, trio.open_nursery() as nursery:
        await put(rig.engine, *[0] * 8, kind="narrow")

        async def claim() -> None:
            found.append(await visit(rig.engine, 3, caps=CAPS))

        with trio.fail_after(5), psycopg.connect(url) as other:
            other.execute(LOCK_CAPS)
            other.execute(TAKE_THREE)
            nursery.start_soon(claim)
            while not rig.raw(WAITING):  # noqa: ASYNC110 - only asking again tells
                await trio.sleep(0.005)
    assert len(found[0].claims) == 1
