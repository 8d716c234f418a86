"""The servers that a URL names, and which of them is connected to: one that serves.

With several there is a primary among them, which changes; the others refuse what they are asked
for (`target_session_attrs`) or do not answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import attrs
import psycopg
import trio
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_attempts

from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.errors import NoHostServes

HEAD_START_SECONDS = 0.5  # what a silent host has before the next one is asked, too

Reach = Callable[[ConnDict, float], Awaitable[TrioConnection]]
LookUp = Callable[[ConnDict], Awaitable[list[ConnDict]]]


async def look_up(params: ConnDict) -> list[ConnDict]:
    """One attempt for each address of each host, by the machine's resolver."""
    return await trio.to_thread.run_sync(conninfo_attempts, params, abandon_on_cancel=True)


@attrs.define(eq=False)
class Hosts:
    """Those of one URL, in its order, but the one that served last comes first."""

    params: ConnDict
    timeout_seconds: float  # for each of them
    _reach: Reach = TrioConnection.reach
    _look_up: LookUp = look_up
    _served: str | None = attrs.field(default=None, init=False)

    async def connect(self) -> TrioConnection:
        """A connection to the first that serves. A host that keeps silent holds up the others for
        a moment only. Raises psycopg's errors; `NoHostServes` where several have failed.
        """
        asking = _Asking(self._reach, self.timeout_seconds)
        conn = await asking.ask_all(self._in_order(await self._attempts()))
        self._served = asking.served
        return conn

    async def _attempts(self) -> list[ConnDict]:
        """The names are looked up anew each time: they may have moved."""
        try:
            with trio.fail_after(self.timeout_seconds):
                return await self._look_up(self.params)
        except trio.TooSlowError:
            names = ", ".join(places(self.params))
            said = f"the names of {names} were not found within {self.timeout_seconds:g} s"
            raise psycopg.OperationalError(said) from None

    def _in_order(self, attempts: Sequence[ConnDict]) -> list[ConnDict]:
        return sorted(attempts, key=lambda attempt: place(attempt) != self._served)


@attrs.define(eq=False)
class _Asking:
    """One round over all hosts."""

    reach: Reach
    timeout_seconds: float
    served: str | None = None
    _conn: TrioConnection | None = None
    _failed: list[psycopg.Error] = attrs.field(factory=list[psycopg.Error])

    async def ask_all(self, attempts: Sequence[ConnDict]) -> TrioConnection:
        try:
            await self._ask_in_turn(attempts)
        except BaseException:
            if self._conn is not None:
                self._conn.discard()
            raise
        if self._conn is not None:
            return self._conn
        if len(self._failed) == 1:
            raise self._failed[0]
        raise NoHostServes(self._failed)

    async def _ask_in_turn(self, attempts: Sequence[ConnDict]) -> None:
        async with trio.open_nursery() as nursery:
            for attempt in attempts:
                answered = trio.Event()
                nursery.start_soon(self._ask, attempt, answered, nursery.cancel_scope)
                with trio.move_on_after(HEAD_START_SECONDS):
                    await answered.wait()

    async def _ask(self, attempt: ConnDict, answered: trio.Event, others: trio.CancelScope) -> None:
        try:
            conn = await self.reach(attempt, self.timeout_seconds)
        except (psycopg.Error, OSError) as error:
            if not isinstance(error, psycopg.Error):
                error = psycopg.OperationalError(str(error))
            self._failed.append(error)
            answered.set()
            return
        if self._conn is not None:  # two at the same moment
            conn.discard()
            return
        self._conn, self.served = conn, place(attempt)
        others.cancel()


def place(attempt: ConnDict) -> str:
    """One host's name for people, as `host:port`."""
    return places(attempt)[0]


def places(params: ConnDict) -> list[str]:
    """Where these parameters lead, as `host:port` each."""
    hosts = str(params.get("host") or params.get("hostaddr") or "local socket").split(",")
    ports = str(params.get("port") or "").split(",")
    if len(ports) != len(hosts):  # one for all, as libpq has it
        ports = ports[:1] * len(hosts)
    pairs = zip(hosts, ports, strict=True)
    return [
        f"{host or 'local socket'}:{port}" if port else host or "local socket"
        for host, port in pairs
    ]
