"""The client on PostgreSQL: a pool for threads, and enqueueing that is safe to repeat."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import psycopg
from psycopg.abc import ConnDict, PQGen
from psycopg_pool import ConnectionPool, PoolTimeout

from musterd.store.errors import (
    InputRefused,
    NoSuchJob,
    NotAllowed,
    OutcomeUnknown,
    StoreUnavailable,
    no_thread,
)
from musterd.store.input import JobWanted
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import Action
from musterd.store.postgres import addresses, enqueueing
from musterd.store.postgres.addresses import places
from musterd.store.postgres.callers import enqueue_through, enqueue_through_async
from musterd.store.postgres.endings import Endings, ListeningWatch
from musterd.store.postgres.enqueueing import Program, carry_out, statements_for_clients
from musterd.store.postgres.errors import READ_ONLY, first_line, sort_connect_error, sort_error
from musterd.store.postgres.jobs import id_params, job_records
from musterd.store.postgres.outbox import with_webhooks
from musterd.store.postgres.statements import SNAPSHOT
from musterd.store.watching import Watch

T = TypeVar("T")
# The errors that we raise say what is wrong: a program that logs nothing sees no others.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


Connection = psycopg.Connection[Any]
Work: TypeAlias = Callable[[], Program[T]]


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


class Reach(NamedTuple):
    """How the server is reached; for what each means see `store.client.Client`."""

    pool_size: int
    answer_seconds: float
    listen_url: str | None


class PostgresBackend:
    """See `store.client.Backend`. Enqueueing and acting need no right but to call the functions;
    many jobs at once go faster with the right to insert.
    """

    def __init__(self, url: str, schema: str, reach: Reach) -> None:
        self._params = addresses.connection_params(url)
        self._listen_params = addresses.connection_params(reach.listen_url or url)
        self._where = addresses.address(self._params)
        # A host that keeps silent must leave time for the others.
        self._host_seconds = HOST_SECONDS if len(places(self._params)) > 1 else CONNECT_SECONDS
        self._schema = schema
        self._reach = reach
        self._sql = statements_for_clients(schema)
        self._endings = Endings(schema, self._connected_to_listen)
        self._pool: ConnectionPool[PatientConnection] | None = None
        self._lock = threading.Lock()

    def enqueue(self, job: NewJob) -> int:
        return self._once(partial(enqueueing.enqueue, self._schema, [job]))[0]

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[int]:
        return self._once(partial(enqueueing.enqueue, self._schema, jobs))

    def enqueue_pairs(self, pairs: Sequence[JobWanted]) -> list[int]:
        return self._once(partial(enqueueing.enqueue_pairs, self._schema, pairs))

    def through(self, connection: Any, jobs: Sequence[NewJob]) -> list[int]:
        return enqueue_through(connection, self._schema, jobs)

    async def through_async(self, connection: Any, jobs: Sequence[NewJob]) -> list[int]:
        return await enqueue_through_async(connection, self._schema, jobs)

    def job(self, job_id: int) -> JobRecord | None:
        with self._connection("reading a job") as conn, conn.pipeline():
            conn.execute(SNAPSHOT)
            found = conn.execute(self._sql["jobs_of"], id_params([(job_id,)])).fetchall()
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

    def watch(self, job_id: int) -> Watch:
        return ListeningWatch(job_id, self._endings, self._mark, partial(self.job, job_id))

    def close(self) -> None:
        self._endings.close()
        self._close_pool()

    def _mark(self, job_id: int) -> None:
        with self._connection("waiting for a job") as conn:
            conn.execute(self._sql["await_end"], {"id": job_id})

    def _close_pool(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _once(self, work: Work[T]) -> T:
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
                self._close_pool()  # these connections lead to a standby: the next ones are new
            raise sort_error(error, what, self._where, sent=True) from error

    def _opened(self) -> ConnectionPool[PatientConnection]:
        with self._lock:
            if self._pool is None:
                try:
                    self._pool = self._new_pool()
                except RuntimeError as error:
                    message = f"opening: {self._where}: {no_thread(error).strerror}"
                    raise StoreUnavailable(message, "no_thread") from None
            return self._pool

    def _new_pool(self) -> ConnectionPool[PatientConnection]:
        return ConnectionPool(
            connection_class=PatientConnection,
            configure=self._limit,
            kwargs={
                **self._reaching(self._params),
                "autocommit": True,
                "prepare_threshold": None,
            },
            min_size=0,
            max_size=self._reach.pool_size,
            open=True,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=CONNECT_SECONDS,
            check=ConnectionPool.check_connection,
        )

    def _limit(self, conn: PatientConnection) -> None:
        conn.answer_seconds = self._reach.answer_seconds

    def _reaching(self, params: ConnDict) -> ConnDict:
        return {"connect_timeout": round(self._host_seconds), **params}

    def _connected_to_listen(self) -> Connection:
        reaching: Any = self._reaching(self._listen_params)  # libpq's own names
        try:
            conn = PatientConnection.connect(**reaching, autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            raise sort_connect_error(error, addresses.address(self._listen_params)) from None
        self._limit(conn)
        return conn

    def _connect_trouble(self) -> Exception:
        """The pool says only that it took too long: what is wrong is asked for once more."""
        try:
            psycopg.connect(**self._reaching(self._params)).close()  # type: ignore[arg-type]  # libpq's own names
        except psycopg.Error as error:
            return sort_connect_error(error, self._where)
        said = f"{self._where}: no connection was free within {CONNECT_SECONDS:g} s"
        return StoreUnavailable(said, "too_many_connections")


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

    def run(self, conn: Connection, work: Work[T]) -> T:
        with conn.transaction():
            self.result = carry_out(conn, work())
            self.id = conn.execute(TRANSACTION).fetchall()[0]
        return self.result
