"""Asks PostgreSQL as the daemon does, and sees what is read for it."""

from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import attrs
import psycopg

from musterd.store.leases import Caps, Claim, ClaimRequest, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.claiming import (
    LATE_SECONDS,
    Findings,
    Mark,
    Start,
    claim_params,
    claims_and_findings,
)
from musterd.store.postgres.exchanges import settlement_params
from musterd.store.postgres.setup import PLANNER, limits
from musterd.store.postgres.statements import fill
from musterd.store.sqlfiles import load_statements
from tests.contract.rigs import OPTIONS, SCHEMA, PostgresRig, opened

BATCH = 20
# With entries that the claim before it left in the index, priority by priority.
BATCHES_TOUCHED = 4
SCANNED = ("job_rows", "ready")
PAGES_A_JOB = 30  # of tables and indexes, each as often as it is looked at
READY = "insert into job_rows (kind) select 'ready' from generate_series(1, 2000)"

# Jobs of two priorities that have just been done, and left their entries where claims walk. Made as
# they stand, past what guards the steps in between.
GONE = """
set session_replication_role = replica;
with made as (
    insert into job_rows (kind, priority, run_at, state, attempt, last_outcome, finished_at)
    select 'gone', n % 2, clock_timestamp() - random() * interval '1 hour',
           'succeeded', 1, 'succeeded', clock_timestamp()
    from generate_series(1, {many}) n returning id, priority, run_at
)
insert into ready select priority, run_at, id, id, 'gone' from made;
delete from ready;
set session_replication_role = origin;
insert into job_rows (kind, priority, run_at)
select 'next', 1, clock_timestamp() + n * interval '1 microsecond' from generate_series(1, 50) n
"""


class Session:
    """Asks as the daemon does."""

    def __init__(self, rig: PostgresRig) -> None:
        self.conn = psycopg.connect(rig.url, autocommit=True)
        for name, value in (limits(OPTIONS) | PLANNER).items():
            self.conn.execute("select set_config(%s, %s, false)", (name, value))
        self._statements = load_statements("musterd.store.postgres")

    def claim(self) -> list[Claim]:
        return self._claim("claim")[0]

    def look(self, form: str) -> Findings:
        """What a claim came by."""
        return self._claim(form)[1]

    def _claim(self, form: str) -> tuple[list[Claim], Findings]:
        request = a_request()
        (row,) = self.conn.execute(self._text(form), claim_params(request)).fetchall()
        return claims_and_findings(row, request.token, request.workers)

    def settle(self, claims: list[Claim]) -> None:
        self.conn.execute(self._text("settle"), _ends(claims))

    def undone(self, form: str, batch: int) -> tuple[list[int], int]:
        """What it took, and how many it left to who asks for targets. Nothing of it stays."""
        request = ClaimRequest(uuid4(), "north", (), batch, 30.0)
        with self.conn.transaction(force_rollback=True):
            (row,) = self.conn.execute(self._text(form), claim_params(request)).fetchall()
        claims, rest = claims_and_findings(row, request.token, ())
        return [claim.id for claim in claims], rest.busy

    def watched(self, form: str, marks: Sequence[Mark] = (), caps: Caps = ()) -> tuple[int, int]:
        """A claim, or a look along the places of jobs."""
        request = attrs.evolve(a_request(), caps=caps)
        start = Start(marks, LATE_SECONDS if marks else 0.0)
        params = claim_params(request, None, start)
        return self._watched(form, {**params, "bound": BATCH, "me": None, "pauses": 3.0})

    def watched_settlement(self, claims: list[Claim]) -> tuple[int, int]:
        return self._watched("settle", _ends(claims))

    def _watched(self, name: str, params: Any) -> tuple[int, int]:
        """The most rows of jobs or stretches that one scan came by, and all pages looked at."""
        asked = b"explain (analyze, buffers, format json) " + self._text(name)
        row = self.conn.execute(asked, params).fetchone()
        assert row is not None
        root = row[0][0]["Plan"]
        scans = [node for node in _nodes(root) if node.get("Relation Name") in SCANNED]
        touched = [_rows(node) for node in scans if "Scan" in node["Node Type"]]
        return max(touched), root["Shared Hit Blocks"] + root["Shared Read Blocks"]

    def _text(self, name: str) -> bytes:
        return fill(self._statements[name], SCHEMA).encode()


@asynccontextmanager
async def unvacuumed(url: str) -> AsyncGenerator[PostgresRig]:
    async with opened(PostgresRig(url)) as ready:
        assert isinstance(ready, PostgresRig)
        ready.tampered = True
        for table in ("job_rows", "ready"):
            ready.raw(f"alter table {table} set (autovacuum_enabled = off)")
        yield ready


@contextmanager
def held_snapshot(rig: PostgresRig) -> Generator[None]:
    with psycopg.connect(rig.url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select 1 from pg_class limit 1")
        yield


def a_request() -> ClaimRequest:
    return ClaimRequest(uuid4(), "north", tuple(range(BATCH)), 0, 30.0)


def _ends(claims: list[Claim]) -> Any:
    state, outcome = JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED
    settled = [
        Settlement(one.id, one.token, one.attempt, one.worker, 1.0, 2.0, state, outcome)
        for one in claims
    ]
    return settlement_params(settled)


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
