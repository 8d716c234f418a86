"""A bound on all jobs that run at once in a store, whatever their kinds, targets and nodes."""

from functools import partial
from random import Random

import psycopg
import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.leases import (
    Claim,
    Exchange,
    Hold,
)
from musterd.store.lifecycle import Action, JobState
from musterd.store.postgres.engine import PostgresEngine
from tests.contract.job_tools import ending, ids, put, reap_by, settle, visit
from tests.contract.rigs import LEASE_SECONDS, OPTIONS, PostgresRig, Rig, closing_engine, opened
from tests.contract.test_caps import LOCK_CAPS, TAKE_THREE, WAITING, check_drain, sixteen
from tests.fix_postgres import FreshDatabase

MOST = 4
bounded = partial(visit, leased_max=MOST)
LEASED = "select count(*) from {table} where state in ('assigned', 'running')"


async def test_no_more_are_claimed_than_may_run(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 10)
    first = await bounded(rig.engine, 3)
    assert ids(first.claims) == made[:3]
    assert ids((await bounded(rig.engine, 3)).claims) == made[3:4]
    assert (await bounded(rig.engine, 3)).claims == []
    # Nothing was put out of the way: what waits is in its place.
    again = await bounded(rig.engine, 3, [ending(one) for one in first.claims[:2]])
    assert ids(again.claims) == made[4:6]


async def test_what_is_claimed_ahead_counts(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 10)
    assert ids((await bounded(rig.engine, 1, ahead=8)).claims) == made[:4]
    assert (await bounded(rig.engine, 1, ahead=8)).claims == []


async def test_it_holds_beside_the_caps_of_kinds_and_over_targets(rig: Rig) -> None:
    narrow = await put(rig.engine, *[0] * 3, kind="narrow")
    aimed = await rig.engine.jobs.enqueue(
        [NewJob("report", target="a"), NewJob("report", target="b")]
    )
    wide = await put(rig.engine, *[0] * 3)
    claims: list[int] = []
    for _ in range(4):
        claims += ids((await bounded(rig.engine, 8 - len(claims), caps=(("narrow", 1),))).claims)
    assert claims == [narrow[0], *aimed, wide[0]]


async def test_a_lost_lease_makes_room_when_it_is_reaped(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 7)
    await bounded(rig.engine, 4)
    rig.pass_time(60)
    assert (await bounded(rig.engine, 4)).claims == []
    await rig.engine.leases.reap(reap_by("fail", 9, 2))
    claims = (await bounded(rig.engine, 4)).claims
    assert len(claims) == 2
    assert claims[0].id in made


async def test_a_lower_bound_waits_until_enough_have_ended(rig: Rig) -> None:
    await put(rig.engine, *[0] * 10)
    held = (await bounded(rig.engine, 4)).claims
    two = [ending(one) for one in held[:2]]
    assert (await bounded(rig.engine, 4, two, leased_max=2)).claims == []
    assert len((await bounded(rig.engine, 4, [ending(held[2])], leased_max=2)).claims) == 1


async def test_sixteen_at_once_never_go_over_it(shared: Rig) -> None:
    made = await shared.engine.jobs.enqueue([NewJob(f"kind{number % 7}") for number in range(200)])

    async def claim(engine: Engine) -> list[Claim]:
        return (await bounded(engine, 3)).claims

    await check_drain(shared, made, claim, LEASED)


async def test_no_bound_is_asked_about_where_there_is_none(rig: Rig) -> None:
    await put(rig.engine, *[0] * 9)
    found = await bounded(rig.engine, 9, leased_max=None)
    assert (len(found.claims), found.full) == (9, False)
    assert (await rig.engine.queue.observe(10)).room is None


async def test_a_claim_says_that_no_more_may_run(rig: Rig) -> None:
    await put(rig.engine, *[0] * 3)
    few = await bounded(rig.engine, 5)
    assert (len(few.claims), few.full) == (3, False)
    await put(rig.engine, *[0] * 3)
    filled = await bounded(rig.engine, 5)
    assert (len(filled.claims), filled.full) == (1, True)
    nothing = await bounded(rig.engine, 5)
    assert (nothing.claims, nothing.parked, nothing.full) == ([], 0, True)
    lower = await bounded(rig.engine, 5, leased_max=2)
    assert (lower.claims, lower.full) == ([], True)
    ended = await bounded(rig.engine, 5, [ending(one) for one in few.claims], leased_max=9)
    assert (len(ended.claims), ended.full) == (2, False)


async def test_how_much_room_there_is_can_be_seen(rig: Rig) -> None:
    await put(rig.engine, *[0] * 6)
    assert (await rig.engine.queue.observe(10, None, MOST)).room == MOST
    held = (await bounded(rig.engine, 3)).claims
    assert (await rig.engine.queue.observe(10, None, MOST)).room == 1
    assert (await rig.engine.queue.observe(10, None, 2)).room == 0
    rig.pass_time(2 * LEASE_SECONDS)
    assert (await rig.engine.queue.observe(10, None, MOST)).room == 1, "until they are reaped"
    await settle(rig.engine, *(ending(one) for one in held))
    assert (await rig.engine.queue.observe(10, None, MOST)).room == MOST


async def test_a_full_store_parks_nothing_and_gives_nothing_back(rig: Rig) -> None:
    """Looks that find no room change nothing, however many come."""
    caps = (("narrow", 3),)
    await put(rig.engine, *[1] * 30, kind="narrow")
    await put(rig.engine, *[0] * 30)
    held: list[Claim] = []
    for _ in range(9):
        held += (await bounded(rig.engine, 4 - len(held), caps=caps)).claims
    kinds = sorted(one.kind for one in held)
    assert kinds == ["narrow", "narrow", "narrow", "report"]
    await settle(rig.engine, ending(held[0]))
    await put(rig.engine, 9)
    assert len((await bounded(rig.engine, 1, caps=caps)).claims) == 1
    parked = rig.raw(f"select count(*) from {rig.table} where parked")
    for _ in range(9):
        found = await bounded(rig.engine, 8, caps=caps)
        assert (found.claims, found.parked, found.full) == ([], 0, True)
    assert rig.raw(f"select count(*) from {rig.table} where parked") == parked


async def test_a_lease_that_ran_out_counts_until_it_is_ended_even_if_it_is_renewed(
    rig: Rig,
) -> None:
    await put(rig.engine, *[0] * 8)
    held = (await bounded(rig.engine, 4)).claims
    rig.pass_time(2 * LEASE_SECONDS)
    assert (await bounded(rig.engine, 4)).claims == []
    first = held[0]
    await rig.engine.leases.renew([Hold(first.id, first.token, None, None)], LEASE_SECONDS)
    assert (await bounded(rig.engine, 4)).claims == []
    reaped = await rig.engine.leases.reap(reap_by("fail", 9, 9))
    assert len(reaped) == 4  # a renewal that comes so late extends nothing
    assert len((await bounded(rig.engine, 9)).claims) == 4


async def test_a_job_that_is_to_be_canceled_counts_until_it_has_ended(rig: Rig) -> None:
    await put(rig.engine, *[0] * 6)
    held = (await bounded(rig.engine, 4)).claims
    await rig.engine.control.apply(Action.CANCEL, held[0].id)
    await rig.engine.control.apply(Action.PAUSE, held[1].id)
    assert (await bounded(rig.engine, 4)).claims == []
    ends = [ending(held[0], JobState.CANCELED), ending(held[1], JobState.PAUSED)]
    assert len((await bounded(rig.engine, 4, ends)).claims) == 2


async def test_stores_of_different_tenants_do_not_count_for_each_other(
    fresh_database: FreshDatabase,
) -> None:
    url = fresh_database()
    rig = PostgresRig(url)
    other = PostgresEngine(url, "musterd_acme", OPTIONS, Random(1))
    async with opened(rig), closing_engine(other):
        await other.open()
        await other.migrate()
        for engine in (rig.engine, other):
            await put(engine, *[0] * 9)
        assert len((await bounded(rig.engine, 9)).claims) == MOST
        assert len((await bounded(other, 9, leased_max=2)).claims) == 2
        assert (await bounded(other, 9, leased_max=3)).claims != []


async def test_a_claim_waits_for_another_and_counts_what_it_took(
    postgres_rig: PostgresRig,
) -> None:
    rig, found = postgres_rig, list[Exchange]()
    await put(rig.engine, *[0] * 8)

    async def claim() -> None:
        found.append(await bounded(rig.engine, 3))

    with trio.fail_after(5), psycopg.connect(rig.url) as other:
        other.execute(LOCK_CAPS)
        other.execute(TAKE_THREE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(claim)
            while not rig.raw(WAITING):  # noqa: ASYNC110 - only asking again tells
                await trio.sleep(0.005)
            other.commit()
    assert (len(found[0].claims), found[0].full) == (1, True)


SAMPLE = """
    select count(*), count(case when kind = 'kind1' then 1 end),
           count(target), count(distinct target)
    from {table} where state in ('assigned', 'running')
"""


@pytest.mark.parametrize("together", [False, True])
async def test_sixteen_at_once_keep_to_it_beside_kinds_and_targets(
    shared: Rig, together: bool
) -> None:
    """Also where each settles and claims in one transaction."""
    jobs = [NewJob(f"kind{n % 4}", target=f"t{n % 9}" if n % 3 else None) for n in range(150)]
    made = await shared.engine.jobs.enqueue(jobs)
    samples: list[tuple[int, ...]] = []
    ended: list[int] = []

    async def work(engine: Engine) -> None:
        held: list[Claim] = []
        while len(ended) < len(made):
            ends = [ending(one) for one in held]
            if not together:
                await settle(engine, *ends)
            ended.extend(ids(held))
            claims = await bounded(engine, 3, ends if together else (), caps=(("kind1", 2),))
            held = claims.claims
            assert len(held) <= MOST

    async with sixteen(shared) as engines, trio.open_nursery() as nursery:
        for engine in engines:
            nursery.start_soon(work, engine)
        while len(ended) < len(made):
            samples += await trio.to_thread.run_sync(shared.raw, SAMPLE.format(table=shared.table))
    assert 0 < max(leased for leased, *_ in samples) <= MOST
    assert max(narrow for _, narrow, *_ in samples) <= 2
    assert all(aimed == targets for *_, aimed, targets in samples)
    assert sorted(ended) == made
    assert (await shared.engine.queue.counts()).by_state[JobState.SUCCEEDED] == len(made)
