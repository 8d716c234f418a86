"""Stretches on PostgreSQL: how many of them a claim keeps from others."""

from __future__ import annotations

from tests.contract.job_tools import take
from tests.contract.rigs import PostgresRig


async def test_a_claim_locks_hardly_more_stretches_than_the_last_one_used(
    postgres_rig: PostgresRig,
) -> None:
    postgres_rig.raw("insert into jobs (kind) select 'a' from generate_series(1, 3000)")
    locked_last = """select count(*) from ready where xmax::text::bigint =
                     (select max(xmax::text::bigint) from ready)"""
    await take(postgres_rig.engine, workers=1, ahead=99)
    (before,) = postgres_rig.raw(locked_last)[0]
    await take(postgres_rig.engine, workers=1, ahead=99)
    (after,) = postgres_rig.raw(locked_last)[0]
    assert before > 40  # it could not know
    assert 0 < after <= 4
