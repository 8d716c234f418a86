"""The claim of a single idle worker on PostgreSQL: as the plain claim, or nothing."""

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Ends
from musterd.store.lifecycle import JobState
from musterd.store.postgres.claiming import ClaimForm, claim_params, one_claim_params
from musterd.store.postgres.connection import ASKED_MAX
from musterd.store.postgres.setup import PLANNER
from tests.contract.job_tools import ending, ids, put, settle, state_of, take, take_one
from tests.contract.rigs import LEASE_SECONDS, PostgresRig, opened
from tests.contract.sessions import Connection, Row, Statement
from tests.contract.test_interleaving import PLACE, row_locked

TOKEN = UUID(int=7)
CAPS = (("narrow", 1),)
KEPT = b"select count(*) from pg_prepared_statements where name like 'asked%'"
# All that a claim writes, but for the moment of it.
WRITTEN = [
    "select priority, first_id, last_id, kind, target from ready order by 1, 2",
    """select token, kind, target, node, jobs, started, workers, expires_at - claimed_at,
              heartbeat_at - claimed_at, started_at[1] - claimed_at from leases order by id""",
    "select sum(enqueued), sum(queued) from count_changes",
    """select queued, type, size, job_ids, kinds, targets, attempts, workers, common, details
       from event_drafts order by id""",
    "select room, first_id from waiting order by 2",
]
JOBS = {
    "one": [NewJob("a")],
    "neighbours": [NewJob("a")] * 50,
    "the last of several priorities": [
        NewJob("a", priority=-9), NewJob("b", priority=9), NewJob("c"), NewJob("d", priority=9),
    ],
    "one before another with a target": [NewJob("a"), NewJob("b", target="t")],
    "one before another that is not yet due": [NewJob("a"), NewJob("b", delay_seconds=99)],
}  # fmt: skip


@pytest.fixture
async def rig(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig, Any]:
    made = PostgresRig(fresh_database())
    async with opened(made):
        yield made


@pytest.fixture
def conn(rig: PostgresRig) -> Generator[Connection]:
    with psycopg.connect(rig.url, autocommit=True) as conn:
        for setting in {**PLANNER, "jit": "off"}.items():
            conn.execute(b"select set_config(%s, %s, false)", setting)
        conn.execute("set search_path = musterd")
        yield conn


def asked(token: UUID = TOKEN) -> ClaimRequest:
    return ClaimRequest(token, "north", (3,), 0, LEASE_SECONDS)


def one(*stops: str) -> Statement:
    return Statement("claim_one", one_claim_params(asked(), stops))


def plain() -> Statement:
    request = asked()
    statement = ClaimForm(request).statement(has_marks=False)
    return Statement(statement, claim_params(request, 1))


def done(conn: Connection, statement: Statement) -> tuple[Row, list[Row]]:
    """What it answers, and what is written then. Nothing of it stays."""
    with conn.transaction(force_rollback=True):
        (answer,) = statement.run(conn)
        return answer, [row for look in WRITTEN for row in conn.execute(look.encode())]


def standing(conn: Connection) -> list[Row]:
    return [row for look in WRITTEN for row in conn.execute(look.encode())]


@pytest.mark.parametrize("name", JOBS)
async def test_it_does_what_the_plain_claim_does(
    rig: PostgresRig, conn: Connection, name: str
) -> None:
    await rig.engine.jobs.enqueue(JOBS[name])
    (is_open, _, *job), written = done(conn, one())
    answer, wanted = done(conn, plain())
    assert written == wanted != standing(conn)
    assert is_open is False
    assert job[0] == answer[1][0]


@pytest.mark.parametrize(
    ("job", "stops"),
    [
        (NewJob("a", delay_seconds=99, priority=1), ()),
        (NewJob("a", target="t", priority=1), ()),
        (NewJob("narrow", priority=1), ("wide", "narrow")),
    ],
    ids=["not yet due", "with a target", "of a kind with a limit"],
)
async def test_what_it_cannot_judge_it_leaves_as_it_is(
    rig: PostgresRig, conn: Connection, job: NewJob, stops: tuple[str, ...]
) -> None:
    await rig.engine.jobs.enqueue([job, NewJob("b")])
    before = standing(conn)
    (is_open, _, *found, _), after = done(conn, one(*stops))
    assert (is_open, set(found), after) == (True, {None}, before)


async def test_it_takes_nothing_while_the_queue_is_paused(
    rig: PostgresRig, conn: Connection
) -> None:
    await put(rig.engine, 0)
    await rig.engine.queue.pause("anna")
    before = standing(conn)
    (is_open, _, *found, _), after = done(conn, one())
    assert (is_open, set(found), after) == (True, {None}, before)


async def test_where_nothing_is_due_nobody_has_to_judge(rig: PostgresRig, conn: Connection) -> None:
    for _ in range(2):
        before = standing(conn)
        (is_open, _, *found, _), after = done(conn, one())
        assert (is_open, set(found), after) == (False, {None}, before)
        await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=99)] * 3)


async def test_it_passes_by_what_another_has_locked(rig: PostgresRig, conn: Connection) -> None:
    first, second, third = await put(rig.engine, 2, 1, 0)
    async with row_locked(rig, first, PLACE):
        assert done(conn, one())[0][2] == second
        async with row_locked(rig, second, PLACE):
            assert done(conn, one())[0][2] == third
    assert done(conn, one())[0][2] == first


async def test_it_says_how_many_entries_it_walked_for_nothing(
    rig: PostgresRig, conn: Connection
) -> None:
    await rig.engine.jobs.enqueue([NewJob("a", priority=n % 100) for n in range(500)])
    rig.raw("alter table ready set (autovacuum_enabled = off)")
    with psycopg.connect(rig.url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select 1 from pg_class limit 1")
        rig.raw("delete from job_rows")
        await put(rig.engine, -1)
        assert done(conn, one())[0][1] >= 500


# -- as the engine sends it


async def claim(rig: PostgresRig, caps: tuple[tuple[str, int], ...] = ()) -> list[int]:
    """As often as there may be more."""
    request = ClaimRequest(uuid4(), "north", (3,), 0, LEASE_SECONDS, caps)
    visit = await rig.engine.leases.exchange(Ends(), request)
    if visit.parked and not visit.claims:
        return await claim(rig, caps)
    return ids(visit.claims)


FULL = """
    update job_rows set max_attempts = 4, forgiven = 1, spent = '{"coins": 2}', attempt = 1,
        schedule = 'nightly', scheduled_for = '2026-01-02 03:04:05.678901+00'
"""


async def test_it_says_of_a_job_what_the_plain_claim_says(rig: PostgresRig) -> None:
    await rig.engine.jobs.enqueue([NewJob("ä", '{"a": [1, "ü\\n"]}')] * 3)
    rig.raw(FULL)
    rig.pass_time(12)
    (by_itself,) = await take(rig.engine)
    two = await take(rig.engine, workers=2)
    assert by_itself[7] == two[0][7] == 1  # the worker
    for field, mine, plain_one in zip(Claim._fields, by_itself, two[0], strict=True):
        if field in ("id", "token"):
            assert mine != plain_one
        elif field == "waited_seconds":
            assert 12 <= by_itself.waited_seconds <= two[0].waited_seconds
        elif field == "claimed_epoch":
            assert by_itself.claimed_epoch < two[0].claimed_epoch
        else:
            assert mine == plain_one
            # It takes none that has a target; a claim does not read traces.
            assert (mine is None) == (field in ("target", "traceparent"))


async def test_what_it_cannot_judge_is_claimed_all_the_same(rig: PostgresRig) -> None:
    later, aimed, low = await rig.engine.jobs.enqueue(
        [
            NewJob("a", priority=9, delay_seconds=99),
            NewJob("a", priority=5, target="t"),
            NewJob("a"),
        ]
    )
    assert await claim(rig) == [aimed]
    assert await claim(rig) == [low]
    assert await claim(rig) == []
    rig.pass_time(100)
    assert await claim(rig) == [later]


async def test_limits_hold_when_none_are_expected_any_more(rig: PostgresRig) -> None:
    for _ in range(60):  # none of these meets one
        (job_id,) = await put(rig.engine, 0)
        assert await claim(rig, CAPS) == [job_id]
    first, second = await rig.engine.jobs.enqueue([NewJob("narrow", priority=1)] * 2)
    (free,) = await put(rig.engine, 0)
    assert await claim(rig, CAPS) == [first]
    assert await claim(rig, CAPS) == [free]
    assert await claim(rig, CAPS) == []
    assert await state_of(rig.engine, second) is JobState.QUEUED


async def test_its_claims_can_be_read_back_renewed_and_settled(rig: PostgresRig) -> None:
    await put(rig.engine, 0, 0)
    mine = await take_one(rig.engine)
    assert ids(await rig.engine.leases.claims_under(mine.token)) == [mine.id]
    assert not (await settle(rig.engine, ending(mine))).rejected
    assert await state_of(rig.engine, mine.id) is JobState.SUCCEEDED


async def test_many_statements_of_a_connection_are_not_all_kept(rig: PostgresRig) -> None:
    async with rig.engine.leases.for_exchanges.use("asking") as conn:
        for number in range(ASKED_MAX + 5):
            for word in ("ü", "'"):
                text = f"select {number}, $1::text, null"
                assert await conn.ask(text.encode(), [word]) == [str(number), word, None]
        kept = await conn.ask(KEPT, [])
        assert int(kept[0] or 0) == ASKED_MAX
        with pytest.raises(psycopg.errors.DivisionByZero):
            await conn.ask(b"select 1 / $1::int", ["0"])
        assert await conn.ask(b"select 1", []) == ["1"]
    assert len(await take(rig.engine)) == 0
