"""The Engine on PostgreSQL. Three ways in: the exchange and the leases have a connection each that
nothing else
can hold up; everything else shares a small pool."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import attrs
import psycopg
import trio
from psycopg.abc import ConnDict

from musterd.store.engine import ReapRequest, SchemaState
from musterd.store.errors import StoreUnavailable
from musterd.store.job import (
    Action,
    Claim,
    ClaimRequest,
    ControlResult,
    Counts,
    Enqueued,
    Exchange,
    Hint,
    Hold,
    JobFilter,
    JobRecord,
    JobState,
    NewJob,
    ProgressNote,
    QueueView,
    Reaped,
    Renewal,
    Settlement,
)
from musterd.store.postgres import migrating, rows, setup
from musterd.store.postgres.arrays import texts
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.hints import Hints
from musterd.store.postgres.pool import Gate, Pool
from musterd.store.sqlfiles import load_statements

PARKED_AT_ONCE = 1000  # once a claim had to park jobs, the next looks at so many
UNPARKED_AT_ONCE = 10_000  # of a kind whose cap is gone
DEPTH_BOUND = 10_000  # due jobs are counted one by one up to here
REPLY_SECONDS = 2.0  # what a reply may take beyond the server's own time limit


class PostgresEngine:
    """See `store.engine.Engine` for what each method promises."""

    name = "postgresql"

    def __init__(
        self, url: str, schema: str, options: setup.StoreOptions, dice: random.Random
    ) -> None:
        self._params = setup.connection_params(url)
        self._schema = schema
        self._options = options
        self.where = setup.address(self._params)
        self._sql = {
            name: migrating.fill(text, schema).encode()
            for name, text in load_statements("musterd.store.postgres").items()
        }
        self._dice = dice
        gate = self._gate(self._params, setup.PLANNER)
        self._exchange, self._leases = Pool(gate, 1), Pool(gate, 1)
        self._shared = Pool(gate, options.pool_size)
        listening = (
            setup.connection_params(options.listen_url) if options.listen_url else self._params
        )
        self._scan = 0  # how many jobs the next claim looks at, beyond those that it wants
        self._hints = Hints(self._gate(listening, {}), migrating.channel_of(schema))

    def _gate(self, params: ConnDict, settings: dict[str, str]) -> Gate:
        async def dial() -> TrioConnection:
            return await setup.dial(params, self._options, settings)

        options = self._options
        pause = (options.reconnect_base_seconds, options.reconnect_max_seconds)
        return Gate(dial, self.where, *pause, self._dice)

    async def open(self) -> None:
        async with self._shared.use("opening the store") as conn:
            setup.check_version(conn, self.where)

    async def close(self) -> None:
        for pool in (self._exchange, self._leases, self._shared):
            pool.close()
        self._hints.close()
        await trio.lowlevel.checkpoint()

    async def schema(self) -> SchemaState:
        async with self._shared.use("reading the schema's version") as conn:
            return await migrating.compare(conn, self._schema, self.where)

    async def migrate(self) -> list[str]:
        async with self._shared.use("migrating the schema") as conn:
            return await migrating.migrate(conn, self._schema, self.where)

    async def start_node(self, node: str) -> int:
        del node  # leases name their node; nothing else has to
        await trio.lowlevel.checkpoint()
        return 0

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        if any(job.dedup_key is not None for job in jobs):
            return [one.id for one in await self.enqueue_keyed(jobs)]
        found = await self._run(self._shared, "enqueue", rows.new_jobs(jobs))
        return [row[0] for row in found]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        found = await self._run(self._shared, "enqueue_keyed", rows.keyed_jobs(jobs))
        return [Enqueued._make(row) for row in found]

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        settling = claiming = None
        with _TimeLimit(self._options.statement_timeout_seconds, "exchange"):
            async with self._exchange.use("settling and claiming") as conn, conn.pipeline():
                if settlements:
                    settling = await self._send(
                        conn, "settle", rows.settlements(settlements, now_local)
                    )
                if claim is not None:
                    claiming = await self._claim(conn, claim)
            rejected = (await settling.fetchone() or ([],))[0] if settling else []
            if claiming is None or claim is None:
                return Exchange(frozenset(rejected), [])
            claims, parked = rows.claims_and_parked(await claiming.fetchall(), claim.token)
        self._scan = PARKED_AT_ONCE if parked else 0
        return Exchange(frozenset(rejected), claims, parked)

    async def _claim(
        self, conn: TrioConnection, claim: ClaimRequest
    ) -> psycopg.AsyncCursor[rows.Row]:
        params = rows.claim_request(claim, self._scan)
        if claim.caps:  # the lock in a statement before those that count
            await self._send(conn, "lock_caps", {})
            await self._send(conn, "unpark", params)
        return await self._send(conn, "claim", params)

    async def claims_under(self, token: UUID) -> list[Claim]:
        found = await self._run(self._exchange, "claims_under", {"token": token})
        return rows.claims(found, token)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        found = await self._run(self._exchange, "settled_already", rows.settled_keys(settlements))
        return frozenset(row[0] for row in found)

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        found = await self._run(self._leases, "renew", rows.holds(holds, lease_seconds, now_local))
        return rows.renewal(found)

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        found = await self._run(self._shared, "note_progress", rows.progress_notes(notes))
        return frozenset(row[0] for row in found)

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        if uncapped := [kind for kind, rule in request.rules.items() if not rule.capped]:
            params = {"kinds": texts(uncapped), "batch": UNPARKED_AT_ONCE}
            await self._execute(self._shared, "unpark_uncapped", params)
        found = await self._run(self._shared, "reap", rows.reap_request(request))
        return [rows.reaped(row) for row in found]

    async def control(self, action: Action, job_id: int) -> ControlResult:
        params = {"action": action.value, "id": job_id}
        (row,) = await self._run(self._shared, "control", params)
        return rows.control_result(row)

    async def observe(self, limit: int) -> QueueView:
        return rows.queue_view((await self._run(self._shared, "observe", {"bound": limit}))[0])

    async def next_due_seconds(self) -> float | None:
        seconds: float | None = (await self._run(self._shared, "next_due", {}))[0][0]
        return seconds

    async def counts(self) -> Counts:
        with suppress(StoreUnavailable):  # full or read-only: what is not folded is summed up
            await self._execute(self._shared, "fold_counts", {})
        counted = (await self._run(self._shared, "counts", {}))[0]
        view = await self.observe(DEPTH_BOUND)
        return _beyond_bound(rows.counts(counted, view), await self._waiting())

    async def _waiting(self) -> int:
        """Queued jobs that are not yet due, counted up to the bound."""
        count: int = (await self._run(self._shared, "not_yet_due", {"bound": DEPTH_BOUND}))[0][0]
        return count

    async def job(self, job_id: int) -> JobRecord | None:
        records = await self._records(rows.one_job(job_id))
        return records[0] if records else None

    async def jobs(self, which: JobFilter) -> list[JobRecord]:
        return await self._records(rows.job_filter(which))

    async def _records(self, params: rows.Params) -> list[JobRecord]:
        found = await self._run(self._shared, "jobs", params)
        past = await self._run(self._shared, "attempts", rows.job_ids(found))
        return [
            rows.job_record(row, [rows.attempt_record(one) for one in past if one[0] == row[0]])
            for row in found
        ]

    async def pause_queue(self, by: str) -> bool:
        return await self._execute(self._shared, "pause_queue", {"by": by}) > 0

    async def resume_queue(self) -> bool:
        return await self._execute(self._shared, "resume_queue", {}) > 0

    async def wait_for_hint(self) -> Hint:
        return await self._hints.wait()

    async def _run(self, pool: Pool, name: str, params: rows.Params) -> list[rows.Row]:
        with _TimeLimit(self._options.statement_timeout_seconds, name):
            async with pool.use(name) as conn:
                cursor = await self._send(conn, name, params)
                return await cursor.fetchall()

    async def _execute(self, pool: Pool, name: str, params: rows.Params) -> int:
        """For a statement that changes rows and returns none; gives how many it changed."""
        with _TimeLimit(self._options.statement_timeout_seconds, name):
            async with pool.use(name) as conn:
                return (await self._send(conn, name, params)).rowcount

    async def _send(
        self, conn: TrioConnection, name: str, params: rows.Params
    ) -> psycopg.AsyncCursor[rows.Row]:
        return await conn.cursor(binary=True).execute(self._sql[name], params)


class _TimeLimit:
    """The client's own limit, for a server that does not answer and for poolers, where the server
    has none of ours.
    """

    def __init__(self, seconds: float, what: str) -> None:
        self._scope = trio.CancelScope()
        self._seconds = seconds + REPLY_SECONDS
        self._what = what

    def __enter__(self) -> None:
        self._scope.deadline = trio.current_time() + self._seconds
        self._scope.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        handled = self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise StoreUnavailable(f"{self._what}: no answer within {self._seconds:g} s", "timeout")
        return handled


def _beyond_bound(counts: Counts, waiting: int) -> Counts:
    if counts.due < DEPTH_BOUND or waiting >= DEPTH_BOUND:
        return counts
    return attrs.evolve(counts, due=max(counts.due, counts.by_state[JobState.QUEUED] - waiting))
