"""The client on PostgreSQL: a pool for threads, and enqueueing that is safe to repeat."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

import psycopg
from psycopg.abc import ConnDict, PQGen
from psycopg_pool import ConnectionPool, PoolTimeout

from musterd.config.job_options import NAMES, OPTIONS
from musterd.store.errors import (
    InputRefused,
    NoSuchJob,
    NotAllowed,
    OutcomeUnknown,
    StoreUnavailable,
)
from musterd.store.input import JobWanted, new_jobs
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import Action
from musterd.store.postgres import setup
from musterd.store.postgres.errors import READ_ONLY, first_line, sort_connect_error, sort_error
from musterd.store.postgres.jobs import id_params, job_records, new_job_params, one_job_params
from musterd.store.postgres.migrating import PACKAGE
from musterd.store.postgres.outbox import with_webhooks
from musterd.store.postgres.setup import places
from musterd.store.postgres.statements import SNAPSHOT, fill
from musterd.store.sqlfiles import load_statements

T = TypeVar("T")
# The errors that we raise say what is wrong: a program that logs nothing sees no others.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


Connection = psycopg.Connection[Any]


# A server that has crashed gives ids of transactions again that it had not yet written to disk. It
# is another run of the server then, whose start or whose loss of statistics tells it apart.
RUN = "concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time())"
TRANSACTION = f"select pg_current_xact_id()::text, {RUN}"
STATUS = f"select pg_xact_status(%s::text::xid8), {RUN}"
CONNECT_SECONDS = 5.0
HOST_SECONDS = 2.0  # for one of several; no less can be told to libpq
ASK_SECONDS = 15.0  # how long a transaction whose reply was lost may take to be decided
ASK_PAUSE_SECONDS = 0.1
TRIES = 3  # of a job whose transaction broke and is known not to have been kept
_ARGUMENTS = (f"{one.name} => %({one.name})s::{one.type.sql}" for one in OPTIONS)
CALL = f"select {{schema}}.enqueue(%(kind)s, {', '.join(_ARGUMENTS)})"
CALL_MANY = "select {schema}.enqueue_many(%s::jsonb)"
CALL_ACTION = "select {schema}.%s(%%s::bigint)"
MAY_INSERT = """select has_table_privilege('{schema}.job_rows', 'insert')
    and has_table_privilege('{schema}.kind_rules', 'select')"""


# The sequence is looked up once, in a subselect of its own, and not for every id. The priorities of
# kinds come with them.
NEW_IDS = """select array_agg(nextval((
        select pg_get_serial_sequence('{schema}.job_rows', 'id')::regclass))),
    (select coalesce(jsonb_object_agg(kind, priority), '{}')
     from {schema}.kind_rules where priority <> 0)
    from generate_series(1, %s)"""


COPY = (
    "copy {schema}.job_rows (id, kind, payload, priority, max_attempts, state, target) from stdin"
)


COPIED = frozenset({"payload", "priority", "max_attempts", "hold", "target"})
NOT_COPIED = tuple(name for name in NAMES if name not in COPIED)
DEFAULTS_NOT_COPIED = tuple(NewJob._field_defaults[name] for name in NOT_COPIED)


_not_copied = attrgetter(*NOT_COPIED)


COPY_JOBS = 500
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class PostgresBackend:
    """See `store.client.Backend`. Enqueueing and acting need no right but to call the functions;
    many jobs at once go faster with the right to insert.
    """

    def __init__(self, url: str, schema: str, pool_size: int, answer_seconds: float) -> None:
        self._params = setup.connection_params(url)
        self._where = setup.address(self._params)
        # A host that keeps silent must leave time for the others.
        self._host_seconds = HOST_SECONDS if len(places(self._params)) > 1 else CONNECT_SECONDS
        self._schema = schema
        self._pool_size = pool_size
        self._answer_seconds = answer_seconds
        self._sql = _statements(schema)
        self._pool: ConnectionPool[PatientConnection] | None = None
        self._lock = threading.Lock()

    def enqueue(self, job: NewJob) -> int:
        return self._once(lambda conn: _enqueue(conn, self._sql["enqueue_one"], job))

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[int]:
        return self._once(lambda conn: _enqueue_many(conn, self._sql, jobs))

    def enqueue_pairs(self, pairs: Sequence[JobWanted]) -> list[int]:
        return self._once(lambda conn: _enqueue_pairs(conn, self._sql, pairs))

    def job(self, job_id: int) -> JobRecord | None:
        with self._connection("reading a job") as conn, conn.pipeline():
            conn.execute(SNAPSHOT)
            found = conn.execute(self._sql["jobs"], one_job_params(job_id)).fetchall()
            ids = id_params(found)
            cursors = [
                conn.execute(self._sql[name], ids) for name in ("attempts", "phases", "webhooks_of")
            ]
            conn.execute(b"commit")
            past, phases, webhooks = (cursor.fetchall() for cursor in cursors)
        records = with_webhooks(job_records(found, past, phases), webhooks)
        return records[0] if records else None

    def control(self, action: Action, job_id: int) -> str:
        with self._connection(f"{action.value} a job") as conn:
            try:
                state: str = conn.execute(self._sql[action.value], [job_id]).fetchall()[0][0]
            except psycopg.errors.NoDataFound as error:
                raise NoSuchJob(first_line(error)) from None
            except psycopg.errors.ObjectNotInPrerequisiteState as error:
                raise NotAllowed(first_line(error)) from None
        return state

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _once(self, work: Callable[[Connection], T]) -> T:
        """Does `work` in a transaction of its own, and does it again only if the store says that
        nothing of it was kept.
        """
        tries = 0
        while True:
            transaction = Transaction[T]()
            try:
                with self._connection("enqueueing") as conn:
                    return transaction.run(conn, work)
            except OutcomeUnknown:
                # Without an id it had not come as far as its commit: nothing was kept.
                if transaction.id is not None and self._was_kept(*transaction.id):
                    return transaction.result
                tries += 1
                if tries == TRIES:
                    raise

    def _was_kept(self, transaction_id: str, run: str) -> bool:
        """Whether this transaction of that run of the server was committed. Raises `OutcomeUnknown`
        where nobody can tell.
        """
        deadline = time.monotonic() + ASK_SECONDS
        status = "in progress"
        while time.monotonic() < deadline:
            try:
                with self._connection("asking for a commit") as conn:
                    status, found = conn.execute(STATUS, [transaction_id]).fetchall()[0]
            except StoreUnavailable:
                pass  # asked again until the time is over
            except InputRefused:
                return False  # an id that it has yet to give: it has forgotten the transaction
            else:
                if status == "committed" and found != run:
                    status = "unknown, for the server has crashed or is another one"
                    break
                if status in ("committed", "aborted"):
                    return bool(status == "committed")
            time.sleep(ASK_PAUSE_SECONDS)
        message = f"enqueueing: {self._where}: the reply was lost, and the commit is {status}"
        raise OutcomeUnknown(message, "unreachable")

    @contextmanager
    def _connection(self, what: str) -> Generator[Connection]:
        try:
            with self._opened().connection() as conn:
                yield conn
        except PoolTimeout as error:
            raise self._connect_trouble() from error
        except psycopg.Error as error:
            if error.sqlstate == READ_ONLY:
                self.close()  # these connections lead to a standby: the next ones are new
            raise sort_error(error, what, self._where, sent=True) from error

    def _opened(self) -> ConnectionPool[PatientConnection]:
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    connection_class=PatientConnection,
                    configure=self._limit,
                    kwargs={**self._reaching(), "autocommit": True, "prepare_threshold": None},
                    min_size=0,
                    max_size=self._pool_size,
                    open=True,
                    timeout=CONNECT_SECONDS,
                    reconnect_timeout=CONNECT_SECONDS,
                    check=ConnectionPool.check_connection,
                )
            return self._pool

    def _limit(self, conn: PatientConnection) -> None:
        conn.answer_seconds = self._answer_seconds

    def _reaching(self) -> ConnDict:
        return {"connect_timeout": round(self._host_seconds), **self._params}

    def _connect_trouble(self) -> Exception:
        """The pool says only that it took too long: what is wrong is asked for once more."""
        try:
            psycopg.connect(**self._reaching()).close()  # type: ignore[arg-type]  # libpq's own names
        except psycopg.Error as error:
            return sort_connect_error(error, self._where)
        said = f"{self._where}: no connection was free within {CONNECT_SECONDS:g} s"
        return StoreUnavailable(said, "too_many_connections")


def enqueue_through(conn: Connection, schema: str, jobs: Sequence[NewJob]) -> list[int]:
    """Makes the jobs in the transaction that this connection is in."""
    sql = _statements(schema)
    if len(jobs) == 1:
        return [_enqueue(conn, sql["enqueue_one"], jobs[0])]
    return _enqueue_many(conn, sql, jobs)


def _enqueue(conn: Connection, statement: bytes, job: NewJob) -> int:
    job_id: int = conn.execute(statement, _arguments(job)).fetchall()[0][0]
    return job_id


def _arguments(job: NewJob) -> dict[str, Any]:
    """Of the SQL function, by name."""
    scope = None if job.dedup_key is None else str(job.dedup_scope)
    return {**job._asdict(), "dedup_scope": scope}


def _enqueue_many(conn: Connection, sql: Mapping[str, bytes], jobs: Sequence[NewJob]) -> list[int]:
    if not conn.execute(sql["may_insert"]).fetchall()[0][0]:
        given = [{**_arguments(job), "payload": json.loads(job.payload)} for job in jobs]
        text = json.dumps(given, default=datetime.isoformat)
        found = conn.execute(sql["enqueue_many"], [text]).fetchall()
    elif any(job.dedup_key is not None for job in jobs):
        found = conn.execute(sql["enqueue_keyed"], new_job_params(jobs)).fetchall()
    elif all(_is_plain(job) for job in jobs):
        parts = (jobs[first : first + COPY_JOBS] for first in range(0, len(jobs), COPY_JOBS))
        return _copy(conn, sql, len(jobs), parts)
    else:
        found = conn.execute(sql["enqueue"], new_job_params(jobs)).fetchall()
    return [row[0] for row in found]


def _is_plain(job: NewJob) -> bool:
    """Whether it has only options that are columns of the COPY."""
    return _not_copied(job) == DEFAULTS_NOT_COPIED


def _enqueue_pairs(
    conn: Connection, sql: Mapping[str, bytes], pairs: Sequence[JobWanted]
) -> list[int]:
    """The server takes in one part while the next is checked. What is found to be no job undoes the
    transaction.
    """
    if not conn.execute(sql["may_insert"]).fetchall()[0][0]:
        return _enqueue_many(conn, sql, new_jobs(pairs))
    firsts = range(0, len(pairs), COPY_JOBS)
    parts = (new_jobs(pairs[first : first + COPY_JOBS], before=first) for first in firsts)
    return _copy(conn, sql, len(pairs), parts)


def _copy(
    conn: Connection, sql: Mapping[str, bytes], count: int, parts: Iterable[Sequence[NewJob]]
) -> list[int]:
    """The fastest way in: ids first, then the rows by COPY, part by part."""
    with conn.cursor(binary=True) as cursor:
        ids: list[int]
        of_kinds: dict[str, int]
        ids, of_kinds = cursor.execute(sql["new_ids"], [count]).fetchall()[0]
        free_ids = iter(ids)
        with cursor.copy(sql["copy"]) as copy:
            for part in parts:
                copy.write("".join([_line(next(free_ids), job, of_kinds) for job in part]))
    return ids


def _line(job_id: int, job: NewJob, of_kinds: Mapping[str, int]) -> str:
    budget = "\\N" if job.max_attempts is None else job.max_attempts
    state = "pending" if job.hold else "queued"
    priority = of_kinds.get(job.kind, 0) if job.priority is None else job.priority
    kind, payload = _escaped(job.kind), job.payload.replace("\\", "\\\\")
    target = "\\N" if job.target is None else _escaped(job.target)
    return f"{job_id}\t{kind}\t{payload}\t{priority}\t{budget}\t{state}\t{target}\n"


def _escaped(text: str) -> str:
    if text.isidentifier():
        return text
    return text.translate(ESCAPES)


@cache
def _statements(schema: str) -> Mapping[str, bytes]:
    calls = {"enqueue_one": CALL, "enqueue_many": CALL_MANY, "may_insert": MAY_INSERT}
    calls |= {"new_ids": NEW_IDS, "copy": COPY}
    actions = {action.value: CALL_ACTION % action.value for action in Action}
    texts = {**load_statements(PACKAGE), **calls, **actions}
    return {name: fill(text, schema).encode() for name, text in texts.items()}


INTERRUPT_SECONDS = 0.1  # so often Ctrl-C is heard while an answer is waited for


class PatientConnection(psycopg.Connection[Any]):
    """Waits for no answer longer than `answer_seconds`, then gives up and closes, as if the line
    had broken. libpq by itself waits for ever while the line is well and no answer comes: when the
    server is frozen, or something between lets bytes vanish.
    """

    answer_seconds: float | None = None  # None = as long as it takes

    def wait(
        self, gen: PQGen[T], interval: float = INTERRUPT_SECONDS, timeout: float | None = None
    ) -> T:
        limit = self.answer_seconds if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as error:
            if error.sqlstate is None and not self.closed:
                self.close()
            raise


class Transaction(Generic[T]):
    """One try. `id`, with the run of the server, is set once only the commit is left."""

    id: tuple[str, str] | None = None
    result: T

    def run(self, conn: Connection, work: Callable[[Connection], T]) -> T:
        with conn.transaction():
            self.result = work(conn)
            self.id = conn.execute(TRANSACTION).fetchall()[0]
        return self.result
