"""Jobs at their limit on PostgreSQL, where stretches of several stand: they are cut only where they
must be, and come back only as far as there is room.
"""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import Caps, Claim, ClaimRequest
from musterd.store.postgres.claiming import claim_params
from tests.contract.job_tools import ending, ids, settle, visit
from tests.contract.rigs import LEASE_SECONDS, PostgresRig
from tests.contract.sessions import Statement

ALIKE = 64  # they come in stretches of four
STRETCHES = "select first_id, last_id - first_id + 1 from {} order by first_id"


@pytest.fixture
def rig(postgres_rig: PostgresRig) -> PostgresRig:
    return postgres_rig


def request_for(workers: int, most: int) -> ClaimRequest:
    caps: Caps = (("narrow", most),)
    return ClaimRequest(uuid4(), "north", tuple(range(1, workers + 1)), 0, LEASE_SECONDS, caps)


async def take(rig: PostgresRig, workers: int, most: int) -> list[Claim]:
    return (await visit(rig.engine, workers, caps=(("narrow", most),))).claims


async def narrow(rig: PostgresRig) -> list[int]:
    return await rig.engine.jobs.enqueue([NewJob("narrow")] * ALIKE)


async def test_no_more_come_back_than_there_is_room_for(rig: PostgresRig) -> None:
    made = await narrow(rig)
    held = await take(rig, 9, 2)
    assert ids(held) == made[:2]
    parked = rig.raw(STRETCHES.format("waiting"))
    ready = rig.raw(STRETCHES.format("ready"))
    assert parked[0] == (made[2], 2)
    await settle(rig.engine, ending(held[0]))
    with psycopg.connect(rig.url) as conn:
        found = Statement("unpark", claim_params(request_for(9, 2), 100)).run(conn)
        conn.commit()
    assert [place[-1] for place in found] == [made[2]]
    assert rig.raw(STRETCHES.format("ready")) == [(made[2], 1), *ready]
    assert rig.raw(STRETCHES.format("waiting")) == [(made[3], 1), *parked[1:]]


async def test_a_stretch_of_which_nothing_is_claimed_is_not_cut(rig: PostgresRig) -> None:
    made = await narrow(rig)
    assert ids(await take(rig, 5, 9)) == made[:5]
    assert rig.raw(STRETCHES.format("ready"))[:2] == [(made[5], 3), (made[8], 4)]
    assert ids(await take(rig, 9, 9)) == made[5:9]


async def test_a_stretch_is_cut_where_workers_end_and_where_room_ends(rig: PostgresRig) -> None:
    made = await narrow(rig)
    assert ids(await take(rig, 1, 3)) == made[:1]
    assert rig.raw(STRETCHES.format("ready"))[0] == (made[1], 2)
    assert rig.raw(STRETCHES.format("waiting"))[0] == (made[3], 1)
    assert ids(await take(rig, 9, 3)) == made[1:3]
