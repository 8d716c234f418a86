"""PostgreSQL reckons with the limits of kinds only while it meets jobs of these: the others need
wait for nobody.
"""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
import pytest
import trio

from musterd.store.jobs import NewJob
from musterd.store.leases import Ends, Exchange, Settlement
from musterd.store.postgres.claiming import EXPECTED
from tests.contract.job_tools import ending, visit
from tests.contract.rigs import SCHEMA, PostgresRig

CAPS = (("narrow", 1),)
SECONDS = 5.0  # far more than a claim takes


@pytest.fixture
async def rig(postgres_rig: PostgresRig) -> PostgresRig:
    """One that has met no job of a limited kind for long."""
    await forget(postgres_rig)
    return postgres_rig


async def forget(rig: PostgresRig) -> None:
    for _ in range(EXPECTED):
        await limited(rig, 0)


async def limited(rig: PostgresRig, workers: int, *settlements: Settlement) -> Exchange:
    return await visit(rig.engine, workers, settlements, CAPS)


@contextmanager
def others_claim(rig: PostgresRig) -> Generator[None]:
    """Another node's claim keeps to a limit, and is not committed."""
    with psycopg.connect(rig.url) as other:
        other.execute(f"select {SCHEMA}.take_turn()".encode())
        yield


async def test_a_claim_that_meets_none_waits_for_nobody(rig: PostgresRig) -> None:
    await rig.engine.jobs.enqueue([NewJob("wide")] * 3)
    with others_claim(rig), trio.fail_after(SECONDS):
        (claim,) = (await limited(rig, 1)).claims
        assert len((await limited(rig, 1, ending(claim)._replace(kind="wide"))).claims) == 1


async def test_one_that_meets_one_waits_before_it_takes_it(rig: PostgresRig) -> None:
    await rig.engine.jobs.enqueue([NewJob(kind) for kind in ("wide", "narrow")])
    with others_claim(rig):
        with trio.move_on_after(0.3) as limit:
            await limited(rig, 2)
        assert limit.cancelled_caught
        assert rig.raw("select kind from live_jobs where state = 'running'") == [("wide",)]


async def test_the_limit_and_the_order_hold(rig: PostgresRig) -> None:
    await rig.engine.jobs.enqueue([NewJob(kind) for kind in ("wide", "narrow", "narrow", "wide")])
    done = await limited(rig, 4)
    assert [one.kind for one in done.claims] == ["wide", "narrow", "wide"]
    assert [one.worker for one in done.claims] == [1, 2, 3]
    assert done.parked == 1


async def test_targets_are_met_as_well(rig: PostgresRig) -> None:
    jobs = [NewJob("wide", target="t"), NewJob("narrow"), NewJob("wide", target="t")]
    await rig.engine.jobs.enqueue([*jobs, NewJob("narrow"), NewJob("wide")])
    assert [one.kind for one in (await limited(rig, 5)).claims] == ["wide", "narrow", "wide"]


async def test_who_ends_such_a_job_claims_the_next_one(rig: PostgresRig) -> None:
    await rig.engine.jobs.enqueue([NewJob("narrow")] * 2)
    (claim,) = (await limited(rig, 2)).claims
    await forget(rig)
    (following,) = (await limited(rig, 1, ending(claim)._replace(kind="narrow"))).claims
    assert following.kind == "narrow"


async def test_whoever_sees_that_some_wait_for_room_reckons_with_them(rig: PostgresRig) -> None:
    """The one that ran was ended by another node."""
    await rig.engine.jobs.enqueue([NewJob("narrow")] * 2)
    (claim,) = (await limited(rig, 2)).claims
    await rig.engine.leases.exchange(Ends([ending(claim)]), None)
    await forget(rig)
    assert (await limited(rig, 1)).claims == []
    assert (await rig.engine.queue.observe(10)).parked
    assert [one.kind for one in (await limited(rig, 1)).claims] == ["narrow"]


async def test_one_that_starts_reckons_with_them(postgres_rig: PostgresRig) -> None:
    await postgres_rig.engine.jobs.enqueue([NewJob("narrow")])
    postgres_rig.raw(
        "with taken as (delete from ready returning *) insert into waiting"
        " select 'parked', kind, taken.* from taken"
    )
    assert len((await limited(postgres_rig, 1)).claims) == 1
