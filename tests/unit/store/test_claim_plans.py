"""What a claim and a settlement read and touch, however much else there is. Rows and pages are
counted, not time.
"""

from collections.abc import AsyncGenerator, Callable

import pytest
import trio

from tests.contract.rigs import PostgresRig
from tests.unit.store.plan_session import (
    BATCH,
    BATCHES_TOUCHED,
    PAGES_A_JOB,
    READY,
    Session,
    unvacuumed,
)

MANY = 10_000
# Rows that are put there as they would be after a long while, past what guards steps in between.
SCENES = {
    "nothing else": "select 1",
    "many that are more urgent, and not yet due": """
        with made as (
            insert into job_rows (kind, priority, run_at)
            select 'later', 1 + n % 3, clock_timestamp() + interval '1 day'
            from generate_series(1, {many}) n returning id, priority, run_at)
        insert into ready select priority, run_at, id, id, 'later' from made""",
    "many behind a halted target": """
        insert into job_rows (kind, priority, target, state, finished_at, last_outcome)
        select 'broken', 1, 'halted', 'failed', clock_timestamp(), 'failed';
        insert into target_holders (target, job_id)
        select 'halted', id from job_rows where kind = 'broken';
        with made as (
            insert into job_rows (kind, priority, target)
            select 'behind', 1, 'halted' from generate_series(1, {many}) returning id, run_at)
        insert into waiting
        select 'behind', 'halted', 1, run_at, id, id, 'behind', 'halted' from made""",
    "many that have ended": """
        insert into job_rows (kind, state, finished_at, last_outcome)
        select 'ended', 'succeeded', clock_timestamp(), 'succeeded'
        from generate_series(1, {many})""",
    "many that are parked": """
        with made as (
            insert into job_rows (kind, priority)
            select 'capped', 1 from generate_series(1, {many}) returning id, run_at)
        insert into waiting select 'parked', 'capped', 1, run_at, id, id, 'capped' from made""",
    "many that were deleted": """
        with made as (
            insert into job_rows (kind, priority)
            select 'gone', 1 from generate_series(1, {many}) returning id, run_at)
        insert into ready select 1, run_at, id, id, 'gone' from made;
        delete from ready;
        delete from job_rows where kind = 'gone'""",
}


@pytest.fixture
async def rig(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig]:
    async with unvacuumed(fresh_database()) as ready:
        yield ready


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("analyzed", [True, False], ids=["fresh statistics", "no statistics"])
@pytest.mark.parametrize("form", ["claim", "claim_with_limits", "claim_targets"])
async def test_a_claim_touches_what_it_takes(
    rig: PostgresRig, scene: str, analyzed: bool, form: str
) -> None:
    await trio.lowlevel.checkpoint()
    rig.raw(f"set session_replication_role = replica; {SCENES[scene].format(many=MANY)}")
    rig.raw(READY)
    if analyzed:
        rig.raw("analyze job_rows, ready")
    session = Session(rig)
    with session.conn:
        session.claim()  # the first one after many have gone tidies up behind them
        touched, pages = session.watched(form)
    assert BATCH <= touched <= BATCHES_TOUCHED * BATCH
    assert pages <= PAGES_A_JOB * BATCH


@pytest.mark.parametrize("scene", SCENES)
async def test_both_forms_take_the_same(rig: PostgresRig, scene: str) -> None:
    """What is left out of the plain one decides nothing where there are no limits and no marks."""
    await trio.lowlevel.checkpoint()
    rig.raw(f"set session_replication_role = replica; {SCENES[scene].format(many=MANY)}")
    rig.raw(
        f"insert into job_rows (kind) select 'ready' from generate_series(1, {2 * BATCH});"
        "insert into job_rows (kind, target) values ('aimed', 'a target')"
    )
    session = Session(rig)
    with session.conn:
        for batch in (BATCH, 3 * BATCH):  # the second one comes to the target
            taken, busy = session.undone("claim_with_limits", batch)
            assert len(taken) == min(batch, 2 * BATCH)
            assert busy == (batch > BATCH)
            assert session.undone("claim", batch) == (taken, busy)


async def test_claims_do_not_read_past_those_that_came_before(rig: PostgresRig) -> None:
    """Jobs in hand, and versions of rows that are dead and not yet vacuumed."""
    await trio.lowlevel.checkpoint()
    rig.raw(f"insert into job_rows (kind) select 'ready' from generate_series(1, {100 * BATCH})")
    rig.raw("analyze job_rows, ready")
    session = Session(rig)
    with session.conn:
        for _ in range(30):
            session.settle(session.claim())
            session.claim()  # and stays in hand
        touched, pages = session.watched("claim")
    assert BATCH <= touched <= BATCHES_TOUCHED * BATCH
    assert pages <= PAGES_A_JOB * BATCH


@pytest.mark.parametrize("scene", ["nothing else", "many that have ended"])
async def test_a_settlement_touches_what_it_ends(rig: PostgresRig, scene: str) -> None:
    await trio.lowlevel.checkpoint()
    rig.raw(f"set session_replication_role = replica; {SCENES[scene].format(many=MANY)}")
    rig.raw(READY)
    session = Session(rig)
    with session.conn:
        touched, pages = session.watched_settlement(session.claim())
    assert touched == BATCH
    assert pages <= PAGES_A_JOB * BATCH


@pytest.mark.parametrize("form", ["claim", "claim_with_limits", "claim_targets"])
async def test_a_claim_that_was_planned_in_an_empty_store_reads_what_it_takes(
    rig: PostgresRig, form: str
) -> None:
    """The store was vacuumed while it was empty, and the daemon has its plans since then."""
    await trio.lowlevel.checkpoint()
    session = Session(rig)
    with session.conn as conn:
        conn.execute("vacuum analyze musterd.job_rows, musterd.ready")
        conn.prepare_threshold = 0
        session.look(form)
        ended = SCENES["many that have ended"].format(many=MANY)
        rig.raw(f"set session_replication_role = replica; {ended}")
        rig.raw(READY)
        with conn.transaction():
            session.look(form)
            found = conn.execute(
                "select pg_stat_get_xact_tuples_returned('musterd.job_rows_pkey'::regclass)"
            ).fetchone()
    assert found is not None
    assert BATCH <= found[0] <= BATCHES_TOUCHED * BATCH
