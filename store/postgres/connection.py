"""psycopg on Trio: one connection whose waits are Trio's.

psycopg's generators say which readiness of the socket they need next; `TrioConnection` waits for it
natively, so a query takes no thread and can be cancelled. A cancelled query leaves its connection
closed, never half-used.
"""

from __future__ import annotations

import select
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg
import trio
from psycopg import conninfo as conninfo_tools
from psycopg import generators, pq
from psycopg.abc import ConnDict, PQGen, PQGenConn
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

RV = TypeVar("RV")

# Kept prepared. Each tenant has a claim and a settlement of its own, which take the server 5 ms to
# plan and 0.75 MB to keep; those of all tenants go through the same few connections.
STATEMENTS_MAX = 200
CANCEL_SECONDS = 2.0  # how long a cancelled query may take to tell the server


class TrioConnection(psycopg.AsyncConnection[TupleRow]):
    """An autocommit connection for one task at a time.

    Its pool sees to that, so it needs no lock of its own.
    """

    epoch = 0  # see `pool.Gate`

    def __init__(self, pgconn: pq.abc.PGconn, *args: Any) -> None:
        super().__init__(pgconn, *args)
        self.lock = _Unlocked()  # type: ignore[assignment]  # psycopg's own is asyncio's

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

    async def _cancel_and_close(self) -> None:
        try:
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                await _drive_moving(self._cancel_gen())
        except psycopg.Error:
            pass  # the server is away: closing is all that is left
        finally:
            self.discard()

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
