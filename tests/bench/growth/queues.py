"""Queues on PostgreSQL with much in them, as they are after a long while."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import psycopg

from tests.bench.growth.draining import Gate
from tests.bench.postgres import prepared, succeeded
from tests.bench.running import Used, daemon, used, wait_until
from tests.support.postgres_server import PostgresServer

CHUNK = 100_000
# What there is already is not news: no events, and counts as they would be by now.
READY = """
with made as (
    insert into {schema}.job_rows (kind, payload)
    select %s, jsonb_build_object('i', i) from generate_series(1, %s) i
    returning id, priority, run_at, kind)
insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
select priority, run_at, min(id), max(id), kind from made group by priority, run_at, kind, id / 64
"""
# The same as stretches of one job each; then such that neighbours are done with, or not alike.
ALONE = """
with made as (  -- a thousand a second
    insert into {schema}.job_rows (kind, payload, run_at)
    select 'note', jsonb_build_object('i', i), now() - interval '1 day' + interval '1 millisecond'
           * (i + (select coalesce(max(id), 0) from {schema}.job_rows))
    from generate_series(1, %s) i
    returning id, priority, run_at, kind)
insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
select priority, run_at, id, id, kind from made
"""
EVERY_SECOND_CANCELED = """
with made as (
    insert into {schema}.job_rows (kind, payload, state, finished_at)
    select 'note', jsonb_build_object('i', i), case i %% 2 when 0 then 'canceled' else 'queued' end,
           case i %% 2 when 0 then clock_timestamp() end
    from generate_series(1, 2 * %s) i
    returning id, priority, run_at, kind, state),
ended as (
    insert into {schema}.endings (state, kind, at, jobs)
    select state, kind, clock_timestamp(), range_agg(int8range(id, id, '[]')) from made
    where state = 'canceled' group by state, kind)
insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
select priority, run_at, id, id, kind from made where state = 'queued'
"""
KINDS_IN_TURN = """
with made as (
    insert into {schema}.job_rows (kind, payload)
    select case i %% 2 when 0 then 'note' else 'other' end, jsonb_build_object('i', i)
    from generate_series(1, %s) i
    returning id, priority, run_at, kind)
insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
select priority, run_at, id, id, kind from made
"""
# In the hands of ten nodes, a hundred under each token.
IN_HAND = """
with made as (
    insert into {schema}.job_rows (kind, payload)
    select 'long', jsonb_build_object('i', i) from generate_series(1, %s) i returning id, kind)
insert into {schema}.leases (token, kind, node, claimed_at, expires_at, heartbeat_at, jobs, span,
    started, workers, started_at)
select gen_random_uuid(), kind, 'node ' || id / 100 %% 10, now(), now() + interval '1 day', now(),
       range_agg(int8range(id, id, '[]')), int8range(min(id), max(id), '[]'),
       array_agg(id), array_agg(id %% 100), array_agg(now())
from made group by kind, id / 100
"""
# A thousand targets, each with a job in hand and others behind it.
BUSY = """
with made as (
    insert into {schema}.job_rows (kind, payload, target)
    select 'note', jsonb_build_object('i', i), 'target ' || 1 + i %% 1000
    from generate_series(1, %s) i returning id, priority, run_at, kind, target),
first as (select target, min(id) as id from made group by target),
held as (insert into {schema}.target_holders (target, job_id) select target, id from first),
taken as (
    insert into {schema}.leases (token, kind, target, node, claimed_at, expires_at, heartbeat_at,
        jobs, span)
    select gen_random_uuid(), 'note', target, 'busy', now(), now() + interval '1 day', now(),
           int8multirange(int8range(id, id, '[]')), int8range(id, id, '[]') from first)
insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
select 'behind', target, priority, run_at, id, id, kind, target from made
where id not in (select id from first)
"""
# Each job has a target of its own.
TARGETED = """
with made as (
    insert into {schema}.job_rows (kind, payload, target)
    select 'note', jsonb_build_object('i', i), 'of ' || i
    from generate_series(1, %s) i returning id, priority, run_at, kind, target)
insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
select priority, run_at, id, id, kind, target from made
"""
PARKED = """
with made as (
    insert into {schema}.job_rows (kind, payload)
    select 'narrow', jsonb_build_object('i', i) from generate_series(1, %s) i
    returning id, priority, run_at, kind)
insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind)
select 'parked', kind, priority, run_at, min(id), max(id), kind from made
group by priority, run_at, kind, id / 64
"""
COUNTED = """
update {schema}.job_counts set enqueued = seen.all_of_them, queued = seen.queued,
    succeeded = seen.succeeded, failed = seen.failed
from (select count(*) as all_of_them, count(*) filter (where state = 'queued') as queued,
             count(*) filter (where state = 'succeeded') as succeeded,
             count(*) filter (where state = 'failed') as failed from {schema}.job_rows) seen
"""
FUTURE = """
with made as (
    insert into musterd.job_rows (kind, payload, priority, run_at)
    select 'note', jsonb_build_object('i', i), 1 + i %% 3, clock_timestamp() + interval '1 day'
    from generate_series(1, %s) i returning id, priority, run_at, kind)
insert into musterd.ready (priority, run_at, first_id, last_id, kind)
select priority, run_at, id, id, kind from made
"""
# A thousand targets, each halted by a job that has failed.
BEHIND = """
with broken as (
    insert into musterd.job_rows (kind, target, state, attempt, finished_at, last_outcome)
    select 'note', 'target ' || i, 'failed', 1, clock_timestamp(), 'failed'
    from generate_series(1, 1000) i
    where not exists (select from musterd.target_holders) returning id, target),
halted as (insert into musterd.target_holders (target, job_id) select target, id from broken),
made as (
    insert into musterd.job_rows (kind, payload, target)
    select 'note', jsonb_build_object('i', i), 'target ' || 1 + i %% 1000
    from generate_series(1, %s) i returning id, priority, run_at, kind, target)
insert into musterd.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
select 'behind', target, priority, run_at, id, id, kind, target from made
"""
ENDED = """
with made as (
    insert into musterd.job_rows (kind, payload, state, attempt, started_at, finished_at,
        last_outcome, claim_token, node, worker)
    select 'note', jsonb_build_object('i', i), 'succeeded', 1, clock_timestamp(), clock_timestamp(),
           'succeeded', gen_random_uuid(), 'north', 1 from generate_series(1, %s) i
    returning id, state, kind)
insert into musterd.endings (state, kind, at, jobs)
select state, kind, clock_timestamp(), range_agg(int8range(id, id, '[]')) from made
group by state, kind
"""
BACKENDS = """
select pid from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
"""


@attrs.frozen
class Queue:
    """One database, looked after through a connection of our own."""

    url: str
    conn: psycopg.Connection[Any]
    schemas: Sequence[str] = ("musterd",)

    def say(self, statement: str, params: Sequence[object] = ()) -> None:
        for schema in self.schemas:
            self.conn.execute(statement.format(schema=schema).encode(), params)

    def ask(self, statement: str) -> list[int]:
        """One number of each schema, as far as the schemas are there."""
        there = "select to_regclass('{schema}.nodes') is not null"
        found: list[int] = []
        for schema in self.schemas:
            is_there = self.conn.execute(there.format(schema=schema).encode()).fetchone()
            known = statement.format(schema=schema) if is_there == (True,) else "select 0"
            found += [int(row[0]) for row in self.conn.execute(known.encode())]
        return found

    def stock(self, statement: str, jobs: int, params: Sequence[object] = ()) -> None:
        """Puts so many rows there, in chunks, past triggers."""
        self.conn.execute("set session_replication_role = replica")
        for first in range(0, jobs, CHUNK):
            self.say(statement, [*params, min(CHUNK, jobs - first)])
        self.conn.execute("set session_replication_role = origin")

    def ring(self) -> None:
        """Wakes idle workers, as whoever enqueues does."""
        for schema in self.schemas:
            self.conn.execute(f"select {schema}.hint('')".encode())

    def settle_down(self) -> None:
        """As autovacuum and the checkpointer leave it."""
        self.conn.execute("vacuum analyze")
        self.conn.execute("checkpoint")

    def gate(self, daemons: int = 1) -> Gate:
        pause = "update {schema}.queue_state set paused_at = clock_timestamp()"
        nodes = "select count(*) from {schema}.nodes where phase = 'running'"
        return Gate(
            ready=lambda: all(count >= daemons for count in self.ask(nodes)),
            open=self._open,
            close=lambda: self.say(pause),
            served=self.backends,
        )

    def _open(self) -> None:
        self.say("update {schema}.queue_state set paused_at = null")
        self.ring()

    def backends(self) -> dict[int, Used]:
        found: dict[int, Used] = {}
        for (pid,) in self.conn.execute(BACKENDS):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                found[pid] = used(pid)
        return found


@contextmanager
def queue(
    server: PostgresServer, name: str, tenants: Sequence[str] = (), sets: Sequence[str] = ()
) -> Generator[Queue]:
    """A database with the schema, or that of each tenant, and nothing in it; gone at the end."""
    url = prepared(server, name, 0)
    schemas = [f"musterd_{tenant}" for tenant in tenants] or ["musterd"]
    try:
        with psycopg.connect(url, autocommit=True) as conn:
            made = Queue(url, conn, schemas)
            if tenants:
                _make_tenants(made, sets)
            yield made
    finally:
        server.drop_database(name)


def _make_tenants(queue: Queue, sets: Sequence[str]) -> None:
    with daemon(queue.url, sets):
        wait_until(queue.gate().ready)


def topped_up(queue: Queue, depth: int) -> Callable[[], None]:
    """Makes the queue so deep again, whatever has been done since."""
    done_once = succeeded(queue.conn)
    put_there = 0

    def top_up() -> None:
        nonlocal put_there
        missing = depth + succeeded(queue.conn) - done_once - put_there
        queue.stock(READY, missing, ["note"])
        put_there += missing
        queue.say("update {schema}.job_counts set queued = queued + %s", [missing])
        queue.settle_down()

    return top_up
