"""What a claim and a settlement read and touch, however much else there is. Rows and pages are
counted, not time.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import trio

from musterd.store.job import AttemptOutcome, Claim, ClaimRequest, JobState, Settlement
from musterd.store.postgres import ends, rows
from musterd.store.postgres.claiming import form_of
from musterd.store.postgres.marks import ALL_SECONDS
from musterd.store.postgres.migrating import fill
from musterd.store.postgres.setup import PLANNER, limits
from musterd.store.sqlfiles import load_statements
from tests.contract.rigs import OPTIONS, SCHEMA, PostgresRig, opened

BATCH = 20
MANY = 10_000
# With entries that the claim before it left in the index, priority by priority.
BATCHES_TOUCHED = 4
PAGES_A_JOB = 30  # of tables and indexes, each as often as it is looked at
READY = "insert into job_rows (kind) select 'ready' from generate_series(1, 2000)"
# Rows that are put there as they would be after a long while, past what guards steps in between.
SCENES = {
    "nothing else": "select 1",
    "many that are more urgent, and not yet due": """
        insert into job_rows (kind, priority, run_at)
        select 'later', 1 + n % 3, clock_timestamp() + interval '1 day'
        from generate_series(1, {many}) n""",
    "many behind a halted target": """
        insert into job_rows (kind, priority, target, state, finished_at, last_outcome)
        select 'broken', 1, 'halted', 'failed', clock_timestamp(), 'failed';
        insert into target_holders (target, job_id)
        select 'halted', id from job_rows where kind = 'broken';
        insert into job_rows (kind, priority, target, behind)
        select 'behind', 1, 'halted', true from generate_series(1, {many})""",
    "many that have ended": """
        insert into job_rows (kind, state, finished_at, last_outcome)
        select 'ended', 'succeeded', clock_timestamp(), 'succeeded'
        from generate_series(1, {many})""",
    "many that are parked": """
        insert into job_rows (kind, priority, parked)
        select 'capped', 1, true from generate_series(1, {many})""",
    "many that were deleted": """
        insert into job_rows (kind, priority) select 'gone', 1 from generate_series(1, {many});
        delete from job_rows where kind = 'gone'""",
}

# Jobs of two priorities that have just been done.
GONE = """
insert into job_rows (kind, priority) select 'gone', n % 2 from generate_series(1, {many}) n;
update job_rows set state = 'succeeded', finished_at = clock_timestamp() where kind = 'gone';
insert into job_rows (kind, priority) select 'next', 1 from generate_series(1, 50) n
"""


@pytest.fixture
async def rig(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig, Any]:
    async with opened(PostgresRig(fresh_database())) as ready:
        assert isinstance(ready, PostgresRig)
        ready.raw("alter table job_rows set (autovacuum_enabled = off)")
        yield ready


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("analyzed", [True, False], ids=["fresh statistics", "no statistics"])
@pytest.mark.parametrize("form", ["claim", "claim_plain"])
async def test_a_claim_touches_what_it_takes(
    rig: PostgresRig, scene: str, analyzed: bool, form: str
) -> None:
    await trio.lowlevel.checkpoint()
    rig.raw(f"set session_replication_role = replica; {SCENES[scene].format(many=MANY)}")
    rig.raw(READY)
    if analyzed:
        rig.raw("analyze job_rows")
    session = Session(rig)
    with session.conn:
        session.claim()  # the first one after many have gone tidies up behind them
        touched, pages = session.watched_claim(form=form)
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
            taken, busy = session.undone("claim", batch)
            assert len(taken) == min(batch, 2 * BATCH)
            assert busy == (batch > BATCH)
            assert session.undone("claim_plain", batch) == (taken, busy)


async def test_claims_do_not_read_past_those_that_came_before(rig: PostgresRig) -> None:
    """Jobs in hand, and versions of rows that are dead and not yet vacuumed."""
    await trio.lowlevel.checkpoint()
    rig.raw(f"insert into job_rows (kind) select 'ready' from generate_series(1, {100 * BATCH})")
    rig.raw("analyze job_rows")
    session = Session(rig)
    with session.conn:
        for _ in range(30):
            session.settle(session.claim())
            session.claim()  # and stays in hand
        touched, pages = session.watched_claim()
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


async def test_a_claim_begins_behind_what_nobody_can_remove_yet(rig: PostgresRig) -> None:
    """As long as somebody holds a snapshot, entries of jobs that have gone stay in the index."""
    await trio.lowlevel.checkpoint()
    session = Session(rig)
    with session.conn, held_snapshot(rig):
        rig.raw(f"set session_replication_role = replica; {GONE.format(many=MANY)}; {READY}")
        rig.raw("analyze job_rows")
        first = session.look()
        assert first.walked > rows.WALKED_MAX
        assert session.watched_claim()[0] > MANY // 3
        marks = session.look().firsts
        assert sorted(mark.priority for mark in marks) == [0, 1]
        touched, pages = session.watched_claim(marks)
    assert touched <= BATCHES_TOUCHED * BATCH
    assert pages <= PAGES_A_JOB * BATCH


async def test_what_is_put_before_a_mark_is_found_a_second_later(rig: PostgresRig) -> None:
    claims = rig.engine.exchange
    with held_snapshot(rig):
        rig.raw(f"set session_replication_role = replica; {GONE.format(many=MANY)}; {READY}")
        await claims([], _request(), 0.0)
        rig.raw(
            "insert into job_rows (kind, priority, run_at) values ('early', 1, '2001-01-01');"
            "insert into job_rows (kind, priority) values ('urgent', 9)"
        )
        at_once = await claims([], _request(), 0.0)
        kinds = [one.kind for one in at_once.claims]
        assert kinds[:2] == ["urgent", "next"]
        assert "early" not in kinds
        await trio.sleep(ALL_SECONDS)
        later = await claims([], _request(), 0.0)
        assert later.claims[0].kind == "early"


class Session:
    """Asks as the daemon does."""

    def __init__(self, rig: PostgresRig) -> None:
        self.conn = psycopg.connect(rig.url, autocommit=True)
        for name, value in (limits(OPTIONS) | PLANNER).items():
            self.conn.execute("select set_config(%s, %s, false)", (name, value))
        self._statements = load_statements("musterd.store.postgres")

    def claim(self) -> list[Claim]:
        return self._claim()[0]

    def look(self) -> rows.Rest:
        """What a claim came by."""
        return self._claim()[1]

    def _claim(self) -> tuple[list[Claim], rows.Rest]:
        request = _request()
        text = self._text(form_of(request, with_targets=False, has_marks=False))
        found = self.conn.execute(text, rows.claim_request(request, 0)).fetchall()
        return rows.claims_and_rest(found, request.token)

    def settle(self, claims: list[Claim]) -> None:
        self.conn.execute(self._text("settle"), _ends(claims))

    def undone(self, form: str, batch: int) -> tuple[list[int], int]:
        """What it took, and how many it left to who asks for targets. Nothing of it stays."""
        request = ClaimRequest(uuid4(), "north", (), batch, 30.0)
        with self.conn.transaction(force_rollback=True):
            params = rows.claim_request(request, 0)
            found = self.conn.execute(self._text(form), params).fetchall()
        claims, rest = rows.claims_and_rest(found, request.token)
        return [claim.id for claim in claims], rest.busy

    def watched_claim(
        self, marks: Sequence[rows.Mark] = (), form: str | None = None
    ) -> tuple[int, int]:
        request = _request()
        name = form or form_of(request, with_targets=False, has_marks=bool(marks))
        return self._watched(name, rows.claim_request(request, 0, marks))

    def watched_settlement(self, claims: list[Claim]) -> tuple[int, int]:
        return self._watched("settle", _ends(claims))

    def _watched(self, name: str, params: Any) -> tuple[int, int]:
        """The most rows of job_rows that one of its scans came by, and all pages looked at."""
        asked = b"explain (analyze, buffers, format json) " + self._text(name)
        row = self.conn.execute(asked, params).fetchone()
        assert row is not None
        root = row[0][0]["Plan"]
        scans = [node for node in _nodes(root) if node.get("Relation Name") == "job_rows"]
        touched = [_rows(node) for node in scans if "Scan" in node["Node Type"]]
        return max(touched), root["Shared Hit Blocks"] + root["Shared Read Blocks"]

    def _text(self, name: str) -> bytes:
        return fill(self._statements[name], SCHEMA).encode()


@contextmanager
def held_snapshot(rig: PostgresRig) -> Generator[None]:
    with psycopg.connect(rig.url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select 1 from pg_class limit 1")
        yield


def _request() -> ClaimRequest:
    return ClaimRequest(uuid4(), "north", tuple(range(BATCH)), 0, 30.0)


def _ends(claims: list[Claim]) -> Any:
    state, outcome = JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED
    settled = [
        Settlement(one.id, one.token, one.attempt, one.worker, state, outcome, 1.0, 2.0)
        for one in claims
    ]
    return ends.settlements(settled, 3.0)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _rows(scan: dict[str, Any]) -> int:
    seen = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    each: float = scan["Actual Rows"] + sum(scan.get(name, 0) for name in seen)
    loops: int = scan["Actual Loops"]
    fetched: int = scan.get("Heap Fetches", 0)  # by all loops together
    return round(each * loops) + fetched
