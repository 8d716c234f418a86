"""Hints of new work by LISTEN, on a connection of their own. Polling is the truth; a hint only
makes it early. An idle node asks over this connection too, so that it knows that it lives.
"""

from __future__ import annotations

import re
from collections import deque
from typing import LiteralString

import attrs
import psycopg
import trio
from psycopg import sql

from musterd.store.postgres.connection import Gate, TrioConnection
from musterd.store.postgres.errors import sort_error
from musterd.store.postgres.statements import Numbered, Params, Row, send
from musterd.store.queue import Hint

DUTIES = "duties"  # what is said when somebody gives one up
SAID = re.compile(rf"|{DUTIES}|[0-9]{{1,19}}")  # new work, a duty, or a job by its id
HEARD_MAX = 10_000  # texts that wait to be taken; a request that is not heard comes with a renewal
GATHER_SECONDS = 0.001  # between two hints: those that arrive meanwhile are one
ANSWER_SECONDS = 1.0  # a connection that takes longer counts as dead


@attrs.define(eq=False)
class _Box:
    """What has been heard for one channel. `rung`: come and look, for the task that waits."""

    texts: set[str] = attrs.field(factory=set[str])
    rung: trio.Event | None = None

    def put(self, text: str) -> None:
        self.texts.add(text)
        self.ring()

    def ring(self) -> None:
        if self.rung is not None:
            self.rung.set()


@attrs.define(eq=False)
class _Question:
    """`rows` None = no answer came, or it was refused."""

    statement: Numbered
    params: Params
    rows: list[Row] | None = None
    over: trio.Event = attrs.field(factory=trio.Event)


class Hints:
    """One listening connection for all channels, made at the first wait. One task waits a channel:
    one of these reads for all of them, and another takes its place when it has what it waited for.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._boxes: dict[str, _Box] = {}
        self._listened: set[str] = set()
        self._conn: TrioConnection | None = None
        self._reading: trio.CancelScope | None = None  # of the one that reads
        self._questions: deque[_Question] = deque()
        self._asking: trio.CancelScope | None = None
        self._doubted = False
        self._deaf = False  # a pooler stands in between: notifications never arrive

    async def wait(self, channel: str) -> Hint:
        """Returns at the next hint, and at once after (re)connecting, since hints may have been
        missed. An empty notification is new work, a number is a job whose holder is asked for
        something.
        """
        box = self._boxes.setdefault(channel, _Box())
        await trio.sleep(GATHER_SECONDS)
        while not box.texts:
            if self._deaf:
                await trio.sleep_forever()
            if self._reading is None:
                await self._read_a_while(box)
            else:
                await self._let_another_read(channel, box)
        said, box.texts = box.texts, set()
        requests = frozenset(int(one) for one in said if one not in ("", DUTIES))
        return Hint("" in said, requests, DUTIES in said)

    async def ask(self, statement: Numbered, params: Params) -> list[Row] | None:
        """The rows of a statement, over the connection that hints come by, while somebody waits for
        them; None = it is refused there, or nothing has come back in time: the connection is given
        up.
        """
        question = _Question(statement, params)
        if self._deaf:
            await trio.lowlevel.checkpoint()
            return None
        self._questions.append(question)
        self._interrupt()
        with trio.move_on_after(ANSWER_SECONDS) as limit:
            await question.over.wait()
        if limit.cancelled_caught:
            self._questions = deque(one for one in self._questions if one is not question)
            self.doubt()
        return question.rows

    def forget(self, channel: str) -> None:
        """Nobody waits for this channel any more."""
        self._boxes.pop(channel, None)
        self._interrupt()

    def doubt(self) -> None:
        """The server may not be the one any more where work is made: listens anew."""
        self._doubted = True
        self._interrupt()
        if self._asking is not None:
            self._asking.cancel()

    def close(self) -> None:
        self._doubted = False
        self._listened.clear()
        if self._conn is not None:
            self._conn.discard()
            self._conn = None

    async def _let_another_read(self, channel: str, box: _Box) -> None:
        if channel not in self._listened:
            self._interrupt()  # the reader then listens to this one too
        box.rung = trio.Event()
        try:
            await box.rung.wait()
        finally:
            box.rung = None

    async def _read_a_while(self, own: _Box) -> None:
        """Until something has come, on any channel."""
        self._reading = trio.CancelScope()
        try:
            conn = await self._connected()
            if conn is None or own.texts or await self._answer(conn):
                return
            # Interrupted it has taken nothing from the connection, which a cancelled query has.
            with self._reading:
                await trio.lowlevel.wait_readable(conn.fileno())
            if not self._reading.cancelled_caught:
                conn.hear()
        except psycopg.Error as error:
            self.close()
            raise sort_error(error, "listening for hints", self._gate.where, sent=False) from error
        except Exception:  # whatever was said there: it costs this connection
            self.close()
            raise
        finally:
            self._reading = None
            self._ring_another()

    async def _connected(self) -> TrioConnection | None:
        """The connection, listening to all channels that somebody waits for; None = deaf."""
        if self._doubted:
            self.close()
        if self._conn is None or self._conn.closed:  # a cancelled wait has closed it
            self._listened.clear()
            conn = await self._gate.connect()
            if conn.prepare_threshold is None:
                conn.discard()
                self._deaf = True
                return None
            conn.add_notify_handler(self._take)
            self._conn = conn
        for channel in self._boxes.keys() - self._listened:
            await self._conn.execute(_statement("listen {}", channel))
            self._listened.add(channel)
            if channel in self._boxes:
                self._boxes[channel].put("")
        for channel in self._listened - self._boxes.keys():
            await self._conn.execute(_statement("unlisten {}", channel))
            self._listened.discard(channel)
        return self._conn

    async def _answer(self, conn: TrioConnection) -> bool:
        """Says whether there was a question: hints may have come with its answer."""
        if not self._questions:
            return False
        question = self._questions.popleft()
        try:
            with trio.CancelScope() as self._asking:  # a connection whose query is cut short closes
                cursor = await send(conn, question.statement, question.params)
                question.rows = await cursor.fetchall()
        except psycopg.Error:
            if not conn.is_clean:
                raise
        finally:
            self._asking = None
            question.over.set()
        return True

    def _take(self, said: psycopg.Notify) -> None:
        """Any role that may connect can notify: what musterd does not say is not heard."""
        box = self._boxes.get(said.channel)
        if box is not None and SAID.fullmatch(said.payload) and len(box.texts) < HEARD_MAX:
            box.put(said.payload)

    def _interrupt(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def _ring_another(self) -> None:
        """One that waits is enough: it reads for the others."""
        waiting = next((box for box in self._boxes.values() if box.rung is not None), None)
        if waiting is not None:
            waiting.ring()


def _statement(text: LiteralString, channel: str) -> sql.Composed:
    return sql.SQL(text).format(sql.Identifier(channel))
