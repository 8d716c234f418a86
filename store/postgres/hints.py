"""Hints of new work by LISTEN, on a connection of their own. Polling is the truth; a hint only
makes it early.
"""

from __future__ import annotations

import psycopg
import trio
from psycopg import sql

from musterd.store.job import Hint
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.pool import Gate
from musterd.store.postgres.troubles import sort_error

GATHER_SECONDS = 0.001  # between two hints: those that arrive meanwhile are one


class Hints:
    """One listening connection, made at the first wait. For one waiting task."""

    def __init__(self, gate: Gate, channel: str) -> None:
        self._gate = gate
        self._channel = channel
        self._conn: TrioConnection | None = None
        self._deaf = False  # a pooler stands in between: notifications never arrive

    async def wait(self) -> Hint:
        """Returns at the next hint, and at once after (re)connecting, since hints may have been
        missed. An empty notification is new work, a number is a job whose holder is asked for
        something.
        """
        if self._deaf:
            await trio.sleep_forever()
        await trio.sleep(GATHER_SECONDS)
        if self._conn is None or self._conn.closed:  # a cancelled wait has closed it
            self._conn = await self._listen()
            return Hint(new_work=True, requests=frozenset())
        try:
            said = await self._conn.wait_for_notifications()
        except psycopg.Error as error:
            self.close()
            raise sort_error(error, "listening for hints", self._gate.where, sent=False) from error
        requests = frozenset(int(one) for one in said if one.isdecimal())
        return Hint("" in said, requests)

    async def _listen(self) -> TrioConnection | None:
        conn = await self._gate.connect()
        if conn.prepare_threshold is None:
            conn.discard()
            self._deaf = True
            return None
        try:
            await conn.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))
        except BaseException:
            conn.discard()
            raise
        return conn

    def close(self) -> None:
        if self._conn is not None:
            self._conn.discard()
            self._conn = None
