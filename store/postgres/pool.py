"""A small pool of TrioConnections, and the gate through which all connecting goes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import psycopg
import trio

from musterd.store.connections import ConnectionUse
from musterd.store.errors import InputRefused, StoreError, StoreUnavailable
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.errors import READ_ONLY, sort_connect_error, sort_error
from musterd.store.waiting import Backoff

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

    def __init__(self, gate: Gate, size: int) -> None:
        self._gate = gate
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
            conn = self._take() or await self._gate.connect()
            try:
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
