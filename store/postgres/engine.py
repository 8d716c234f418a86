"""The Engine on PostgreSQL: one schema, reached through the connections of a hub."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from uuid import UUID

import psycopg
import trio

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
    NewJob,
    ProgressNote,
    Reaped,
    Renewal,
    Settlement,
)
from musterd.store.nodes import Beat, NodeRecord
from musterd.store.phases import KindRule, rules_text
from musterd.store.postgres import (
    claim_rows,
    ends,
    migrating,
    numbered,
    rows,
    selecting,
    setup,
    standing,
)
from musterd.store.postgres.audit import PostgresAudit
from musterd.store.postgres.board import PostgresBoard
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.duties import PostgresDuties
from musterd.store.postgres.events import PostgresEvents
from musterd.store.postgres.exchanging import Exchanging
from musterd.store.postgres.hub import Hub
from musterd.store.postgres.looking import DEPTH_BOUND, Looking
from musterd.store.postgres.marks import Marks
from musterd.store.postgres.outbox import PostgresOutbox, with_webhooks
from musterd.store.postgres.outlook import PostgresOutlooks
from musterd.store.postgres.parts import Run
from musterd.store.postgres.phases import PostgresPhases
from musterd.store.postgres.pool import Pool
from musterd.store.postgres.reaping import Reaping
from musterd.store.postgres.records import job_records
from musterd.store.postgres.retention import PostgresRetention
from musterd.store.postgres.schedules import PostgresSchedules
from musterd.store.postgres.time_limit import TimeLimit
from musterd.store.postgres.vitals import PostgresVitals
from musterd.store.queue_view import QueueView
from musterd.store.selection import Look, Selection, Step
from musterd.store.sqlfiles import load_statements
from musterd.store.standing import Standing
from musterd.store.target import BEHIND_BOUND, FIRST_BEHIND, TargetView


class PostgresEngine:
    """See `store.engine.Engine` for what each method promises."""

    name = "postgresql"

    def __init__(
        self,
        url: str,
        schema: str,
        options: setup.StoreOptions,
        rng: random.Random,
        hub: Hub | None = None,
    ) -> None:
        """`hub`: the connections, where they are shared with the engines of other tenants."""
        self._hub = hub = hub or Hub(url, options, rng)
        hub.join()
        self._is_closed = False
        self._schema = schema
        self._options = options
        self.where = f"{hub.where}, schema {schema}"
        self._sql = {
            name: numbered.numbered(migrating.fill(text, schema))
            for name, text in load_statements("musterd.store.postgres").items()
        }
        self._exchange, self._leases, self._shared = hub.exchange, hub.leases, hub.shared
        self._marks = Marks()
        self._exchanging = Exchanging(
            hub.exchange, self._send, self._marks, options.statement_timeout_seconds
        )
        self._reaping = Reaping(
            hub.shared, self._run, self._execute, self._send, self._marks,
            options.statement_timeout_seconds,
        )  # fmt: skip
        self._looking = Looking(self._run, self._exchanging.claiming)
        self._channel = migrating.channel_of(schema)
        self.audit = PostgresAudit(self._run)
        self.board = PostgresBoard(self._run)
        self.events = PostgresEvents(self._run, self._execute)
        self.phases = PostgresPhases(self._run, self._execute)
        self.outbox = PostgresOutbox(self._run, self._execute)
        self.retention = PostgresRetention(
            hub.shared, self._run, self._send, self._whole, options.statement_timeout_seconds
        )
        self.duties = PostgresDuties(self._run, self._execute)
        self.schedules = PostgresSchedules(self._run, self._execute)
        self.outlooks = PostgresOutlooks(hub.hints, self._sql["outlook"], self._marks)
        self.vitals = PostgresVitals(self._run, hub.shared, hub.gate)

    async def open(self) -> None:
        async with self._shared.use("opening the store") as conn:
            setup.check_version(conn, self.where)

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._hub.hints.forget(self._channel)
            await self._hub.leave()

    async def schema(self) -> SchemaState:
        async with self._shared.use("reading the schema's version") as conn:
            return await migrating.compare(conn, self._schema, self.where)

    async def migrate(self) -> list[str]:
        async with self._hub.migrating, self._shared.use("migrating the schema") as conn:
            return await migrating.migrate(conn, self._schema, self.where)

    async def start_node(self, node: str) -> int:
        del node  # leases name their node; nothing else has to
        await trio.lowlevel.checkpoint()
        return 0

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        if any(job.dedup_key is not None for job in jobs):
            return [one.id for one in await self.enqueue_keyed(jobs)]
        found = await self._run("enqueue", rows.new_jobs(jobs))
        return [row[0] for row in found]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        found = await self._run("enqueue_keyed", rows.new_jobs(jobs))
        return [Enqueued._make(row) for row in found]

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        return await self._exchanging.exchange(settlements, claim, now_local)

    async def claims_under(self, token: UUID) -> list[Claim]:
        found = await self._run("claims_under", {"token": token}, self._exchange)
        return claim_rows.claims(found, token)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        found = await self._run("settled_already", ends.settled_keys(settlements), self._exchange)
        return frozenset(row[0] for row in found)

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        found = await self._run("renew", rows.holds(holds, lease_seconds, now_local), self._leases)
        return rows.renewal(found)

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        found = await self._run("note_progress", rows.progress_notes(notes))
        return frozenset(row[0] for row in found)

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        return await self._reaping.reap(request)

    async def control(self, action: Action, job_id: int) -> ControlResult:
        params = {"action": action.value, "id": job_id}
        (row,) = await self._run("control", params)
        return rows.control_result(row)

    async def select_jobs(self, which: Selection, after_id: int, span: int) -> Look:
        params = selecting.selection(which, after_id, span)
        return selecting.look(await self._run("select_jobs", params))

    async def control_many(self, action: Action, ids: Sequence[int], which: Selection) -> Step:
        params = selecting.bulk(action, ids, which)
        with TimeLimit(self._options.statement_timeout_seconds, "control_many"):
            async with self._shared.use("control_many") as conn:
                async with conn.pipeline():  # holders before their jobs, as everybody does
                    await self._send(conn, "lock_targets_of", {"ids": params["ids"]})
                    cursor = await self._send(conn, "control_many", params)
                (row,) = await cursor.fetchall()
        return Step._make(map(frozenset, row))

    async def observe(
        self, limit: int, me: UUID | None = None, leased_max: int | None = None
    ) -> QueueView:
        return await self._looking.observe(limit, me, leased_max)

    async def next_due_seconds(self) -> float | None:
        return await self._looking.next_due_seconds()

    async def counts(self) -> Counts:
        with suppress(StoreUnavailable):  # full or read-only: what is not folded is summed up
            await self.duties.fold_counts()
        counted = (await self._run("counts", {}))[0]
        view = await self.observe(DEPTH_BOUND)
        waiting = await self._looking.waiting()
        return rows.beyond_bound(rows.counts(counted, view), waiting, DEPTH_BOUND)

    async def job(self, job_id: int) -> JobRecord | None:
        if abs(job_id) > selecting.ID_MAX:  # no column could hold it
            await trio.lowlevel.checkpoint()
            return None
        return next(iter(await self._records(rows.one_job(job_id))), None)

    async def jobs(self, which: JobFilter) -> list[JobRecord]:
        return await self._records(rows.job_filter(which))

    async def _records(self, params: rows.Params) -> list[JobRecord]:
        return await self._whole(await self._run("jobs", params), self._run)

    async def _whole(self, found: Sequence[rows.Row], run: Run) -> list[JobRecord]:
        """The records of jobs' rows; what is further asked goes through `run`."""
        ids = rows.job_ids(found)
        past, phases = await run("attempts", ids), await run("phases", ids)
        records = job_records(found, past, phases)
        return with_webhooks(records, await run("webhooks_of", ids))

    async def target(self, name: str) -> TargetView | None:
        params = {"target": name, "bound": BEHIND_BOUND, "shown": FIRST_BEHIND}
        found = await self._run("target", params)
        holder = await self.job(found[0][0]) if found else None
        if holder is None:
            return None
        _, reserved, behind, first_behind = found[0]
        return TargetView(name, holder, reserved, behind, tuple(first_behind))

    async def pause_queue(self, by: str) -> bool:
        return await self._execute("pause_queue", {"by": by}) > 0

    async def resume_queue(self) -> bool:
        return await self._execute("resume_queue", {}) > 0

    async def beat(self, beat: Beat) -> None:
        await self._execute("beat", standing.beat_params(beat))

    async def leave(self, node_id: UUID) -> None:
        await self._execute("leave", {"id": node_id})

    async def nodes(self) -> list[NodeRecord]:
        return [standing.node_record(row) for row in await self._run("nodes", standing.ALL_NODES)]

    async def tell_kinds(self, rules: Mapping[str, KindRule]) -> None:
        if rules:
            await self._execute("tell_kinds", {"rules": rules_text(rules)})

    async def standing(self, job_id: int) -> Standing | None:
        with TimeLimit(self._options.statement_timeout_seconds, "standing"):
            async with self._shared.use("asking why") as conn:
                return await standing.read_standing(conn, self._sql, job_id)

    async def wait_for_hint(self) -> Hint:
        return await self._hub.hints.wait(self._channel)

    async def _run(
        self, name: str, params: rows.Params, pool: Pool | None = None
    ) -> list[rows.Row]:
        with TimeLimit(self._options.statement_timeout_seconds, name):
            async with (pool or self._shared).use(name) as conn:
                cursor = await self._send(conn, name, params)
                return await cursor.fetchall()

    async def _execute(self, name: str, params: rows.Params) -> int:
        """For a statement that changes rows and returns none; gives how many it changed."""
        with TimeLimit(self._options.statement_timeout_seconds, name):
            async with self._shared.use(name) as conn:
                return (await self._send(conn, name, params)).rowcount

    async def _send(
        self, conn: TrioConnection, name: str, params: rows.Params
    ) -> psycopg.AsyncCursor[rows.Row]:
        return await numbered.send(conn, self._sql[name], params)
