"""psycopg on Trio: a connection whose waits are Trio's, a small pool of them, and the gate through
which all connecting goes.

psycopg's generators say which readiness of the socket they need next; `TrioConnection` waits for it
natively, so a query takes no thread and can be cancelled. A cancelled query leaves its connection
closed, never half-used.
"""

from __future__ import annotations

import select
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import attrs
import psycopg
import trio
from psycopg import conninfo as conninfo_tools
from psycopg import generators, pq
from psycopg.abc import ConnDict, PQGen, PQGenConn
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

from musterd.store.connections import ConnectionUse
from musterd.store.errors import InputRefused, StoreError, StoreUnavailable
from musterd.store.postgres.errors import READ_ONLY, sort_connect_error, sort_error
from musterd.store.postgres.moments import read_all_times
from musterd.store.waiting import Backoff

RV = TypeVar("RV")

# Kept prepared. Each tenant has a claim and a settlement of its own, which take the server 5 ms to
# plan and 0.75 MB to keep; those of all tenants go through the same few connections.
STATEMENTS_MAX = 200
ASKED_MAX = 50  # the same of those that go past psycopg's cursors; they are smaller
CANCEL_SECONDS = 2.0  # how long a cancelled query may take to tell the server


class TrioConnection(psycopg.AsyncConnection[TupleRow]):
    """An autocommit connection for one task at a time.

    Its pool sees to that, so it needs no lock of its own.
    """

    epoch = 0  # see `Gate`
    _asked_count = 0
    _encoding = "utf-8"

    def __init__(self, pgconn: pq.abc.PGconn, *args: Any) -> None:
        super().__init__(pgconn, *args)
        self.lock = _Unlocked()  # type: ignore[assignment]  # psycopg's own is asyncio's
        read_all_times(self.adapters)
        self._asked: dict[bytes, bytes] = {}  # the names of prepared statements, by their text

    @classmethod
    async def reach(cls, params: ConnDict, timeout_seconds: float) -> Self:
        """Connects to the one host that `params` name. Raises psycopg's errors."""
        try:
            with trio.fail_after(timeout_seconds):
                conn = await cls._reach_one(conninfo_tools.make_conninfo("", **params))
        except trio.TooSlowError:
            host, port = params.get("host", "the server"), params.get("port")
            raise psycopg.errors.ConnectionTimeout(
                f"no answer from {host}{f':{port}' if port else ''} within {timeout_seconds:g} s"
            ) from None
        conn._autocommit = True
        conn.prepare_threshold = 0
        conn.prepared_max = STATEMENTS_MAX
        return conn

    @classmethod
    async def _reach_one(cls, conninfo: str) -> Self:
        pgconn = await _drive_moving(generators.connect(conninfo))
        return cls(pgconn)

    async def wait(
        self,
        gen: PQGen[RV],
        interval: float = 0.0,
        timeout: float | None = None,  # noqa: ASYNC109  # psycopg's signature
    ) -> RV:
        """Runs a generator of psycopg's to its end.

        If cancelled, tells the server and closes the connection.
        """
        del interval, timeout  # limits are the caller's scopes
        try:
            return await _drive(gen, self.pgconn.socket)
        except trio.Cancelled:
            with trio.CancelScope(deadline=trio.current_time() + CANCEL_SECONDS, shield=True):
                await self._cancel_and_close()
            raise

    async def ask(self, statement: bytes, values: Sequence[str]) -> list[str | None]:
        """The only row of a statement, as text, as are the values of its parameters. By libpq's own
        calls: a cursor of psycopg's would cost a single pick-up 0.05 ms more.
        """
        name = self._asked.get(statement)
        if name is None:
            name = await self._prepare(statement)
        encoding = self._encoding
        self.pgconn.send_query_prepared(name, [value.encode(encoding) for value in values])
        found = await self._result()
        row = [found.get_value(0, column) for column in range(found.nfields)]
        return [None if value is None else value.decode(encoding) for value in row]

    async def _prepare(self, statement: bytes) -> bytes:
        if len(self._asked) >= ASKED_MAX:
            oldest = self._asked.pop(next(iter(self._asked)))
            self.pgconn.send_query(b"deallocate " + oldest)
            await self._result()
        self._encoding = self.info.encoding
        self._asked_count += 1
        name = b"asked_%d" % self._asked_count
        self.pgconn.send_prepare(name, statement)
        await self._result()
        self._asked[statement] = name
        return name

    async def _result(self) -> pq.abc.PGresult:
        """Of what was sent."""
        found: pq.abc.PGresult
        (found,) = await self.wait(generators.execute(self.pgconn))
        if found.status == pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(found)
        return found

    async def _cancel_and_close(self) -> None:
        try:
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                await _drive_moving(self._cancel_gen())
        except psycopg.Error:
            pass  # the server is away: closing is all that is left
        finally:
            self.discard()

    async def set_all(self, wanted: Mapping[str, str]) -> None:
        """Settings of the session; none through a pooler, whose sessions are not ours to set."""
        if wanted and self.prepare_threshold is not None:
            calls = ", ".join("set_config(%s, %s, false)" for _ in wanted)
            values = [part for pair in wanted.items() for part in pair]
            await self.execute(f"select {calls}".encode(), values)

    def hear(self) -> None:
        """Takes what notifications the server has sent; the handlers of the connection have then
        been told. For a connection on which nothing is asked meanwhile.
        """
        self.pgconn.consume_input()
        while (said := self.pgconn.notifies()) is not None:
            if self.pgconn.notify_handler is not None:
                self.pgconn.notify_handler(said)

    async def close(self) -> None:
        self.discard()

    def discard(self) -> None:
        """Closes the connection at once, whatever it was doing. Safe to call twice."""
        self._closed = True
        with suppress(psycopg.OperationalError):  # it has no socket any more
            trio.lowlevel.notify_closing(self.pgconn.socket)
        self.pgconn.finish()

    @property
    def is_clean(self) -> bool:
        """Whether the next user may have it: open, idle, out of any pipeline."""
        return (
            self.pgconn.status == pq.ConnStatus.OK
            and self.pgconn.transaction_status == pq.TransactionStatus.IDLE
            and self.pgconn.pipeline_status == pq.PipelineStatus.OFF
        )

    @property
    def has_news(self) -> bool:
        """Whether the server said something while nobody asked: most likely good-bye."""
        return _ready_now(self.pgconn.socket) in (Ready.R, Ready.RW)


class _Unlocked:
    async def __aenter__(self) -> None:
        """Nothing to wait for."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to give back."""


async def _drive(gen: PQGen[RV], fd: int) -> RV:
    await trio.lowlevel.checkpoint_if_cancelled()
    try:
        wanted = next(gen)
        while True:
            wanted = gen.send(await _ready(fd, wanted))
    except StopIteration as end:
        result: RV = end.value
        return result
    finally:
        gen.close()


async def _drive_moving(gen: PQGenConn[RV]) -> RV:
    """Like `_drive` for generators whose socket may change under way (connecting, cancelling)."""
    try:
        fd, wanted = next(gen)
        while True:
            fd, wanted = gen.send(await _ready(fd, wanted))
    except StopIteration as end:
        result: RV = end.value
        return result
    finally:
        gen.close()


async def _ready(fd: int, wanted: Wait) -> Ready:
    if wanted == Wait.R:
        await trio.lowlevel.wait_readable(fd)
        return Ready.R
    if wanted == Wait.W:
        await trio.lowlevel.wait_writable(fd)
        return Ready.W
    return _ready_now(fd) or await _either(fd)


def _ready_now(fd: int) -> Ready | None:
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLOUT)
    found = poll.poll(0)
    if not found:
        return None
    events = found[0][1]
    readable, writable = events & ~select.POLLOUT, events & select.POLLOUT
    if readable and writable:
        return Ready.RW
    return Ready.R if readable else Ready.W


async def _either(fd: int) -> Ready:
    ready: list[Ready] = []

    async def first(wait: Any, what: Ready) -> None:
        await wait(fd)
        ready.append(what)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first, trio.lowlevel.wait_readable, Ready.R)
        nursery.start_soon(first, trio.lowlevel.wait_writable, Ready.W)
    return ready[0]


Dial = Callable[[], Awaitable[TrioConnection]]

SOON = frozenset({"read_only", "starting"})  # a server answers, and will serve before long
SOON_SECONDS = 1.0  # longest pause until it is asked again


@attrs.define
class Gate:
    """One attempt to connect at a time, and after a failure a jittered pause that grows: a herd of
    nodes does not trample a database that has just come back. While the gate is shut callers fail
    at once.

    `epoch` counts the times that a server was found which takes no writes: connections of earlier
    epochs may lead to it, and are not used again. `on_doubt` is called each time.
    """

    dial: Dial
    where: str
    backoff: Backoff
    on_doubt: Callable[[], None] = lambda: None
    epoch: int = attrs.field(default=0, init=False)
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _shut_until: float = attrs.field(default=float("-inf"), init=False)
    _last: StoreError | None = attrs.field(default=None, init=False)

    async def connect(self) -> TrioConnection:
        """A fresh connection. Raises `StoreUnavailable` or `StoreMisconfigured`."""
        async with self._lock:
            if self._last is not None and trio.current_time() < self._shut_until:
                raise StoreUnavailable(
                    str(self._last), getattr(self._last, "trouble", "unreachable")
                )
            epoch = self.epoch
            try:
                conn = await self.dial()
            except (psycopg.Error, OSError) as error:
                problem = (
                    error
                    if isinstance(error, psycopg.Error)
                    else psycopg.OperationalError(str(error))
                )
                self._note_failure(sort_connect_error(problem, self.where))
                assert self._last is not None
                raise self._last from None  # psycopg's own text may show the password
            self.backoff.succeeded()
            self._last = None
            conn.epoch = epoch
            return conn

    def doubt(self) -> None:
        """This server takes no writes: it is, or has become, a standby. All are asked anew."""
        self.epoch += 1
        self.on_doubt()

    def _note_failure(self, problem: StoreError) -> None:
        is_soon_over = getattr(problem, "trouble", None) in SOON
        self._last = problem
        self._shut_until = trio.current_time() + self.backoff.failed(
            SOON_SECONDS if is_soon_over else float("inf")
        )


class Pool:
    """At most `size` connections, opened when needed. Only clean ones are kept."""

    def __init__(self, gate: Gate, size: int, settings: Mapping[str, str] | None = None) -> None:
        """`settings`: of the sessions in this pool alone, where they are ours to set."""
        self._gate = gate
        self._settings = settings or {}
        self._idle: list[TrioConnection] = []
        self._size = size
        self._slots = trio.Semaphore(size)
        self._closed = False

    def grow_to(self, size: int) -> None:
        """Allows so many connections, if these are more than before."""
        for _ in range(size - self._size):
            self._slots.release()
        self._size = max(self._size, size)

    @property
    def use_now(self) -> ConnectionUse:
        busy = self._size - self._slots.value
        waiting = self._slots.statistics().tasks_waiting
        return ConnectionUse(len(self._idle), busy, self._size, waiting)

    @asynccontextmanager
    async def use(self, what: str) -> AsyncGenerator[TrioConnection]:
        """A connection for this block alone. psycopg's errors leave the block sorted (see
        `troubles`).
        """
        await self._enter()
        try:
            known = self._take()
            conn = known or await self._gate.connect()
            try:
                if known is None:
                    await conn.set_all(self._settings)
                yield conn
            except psycopg.Error as error:
                if error.sqlstate == READ_ONLY:
                    self._gate.doubt()
                raise sort_error(error, what, self._gate.where, sent=True) from error
            except UnicodeEncodeError as error:
                found = f"{error.object[error.start : error.end]!r}"
                raise InputRefused(
                    f"{what}: found {found}, wanted text that UTF-8 can hold"
                ) from error
            finally:
                self._give_back(conn)
        finally:
            self._slots.release()

    async def _enter(self) -> None:
        """Without a turn for all other tasks first, where nobody waits: what is to be asked is
        asked before they go on.
        """
        try:
            self._slots.acquire_nowait()
        except trio.WouldBlock:
            await self._slots.acquire()

    def _take(self) -> TrioConnection | None:
        while self._idle:
            conn = self._idle.pop()
            if self._is_good(conn) and not conn.has_news:
                return conn
            conn.discard()
        return None

    def _give_back(self, conn: TrioConnection) -> None:
        if self._is_good(conn) and not self._closed:
            self._idle.append(conn)
        else:
            conn.discard()

    def _is_good(self, conn: TrioConnection) -> bool:
        return conn.is_clean and conn.epoch == self._gate.epoch

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().discard()
