"""Tells a program's threads which jobs have ended, by LISTEN: one connection and one thread for all
that are waited for, made at the first wait and gone a while after the last.

A job that is waited for is marked; the transaction that ends it then says so. What is marked while
that transaction is under way waits for the job's row, and finds it ended: nothing is missed.
"""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

import attrs
import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from musterd.store.errors import no_thread
from musterd.store.jobs import JobRecord
from musterd.store.watching import Pauses, Rest

IDLE_SECONDS = 60.0  # how long a connection is kept for which nobody waits
LOOK_SECONDS = 30.0  # between two looks at a job of which nothing is heard: it may be deleted
CHANNEL = "select pg_backend_pid(), name from {schema}.hint_channel"
ENDED = "_ended"  # what the name of the nodes' channel is followed by in this one's

Connect = Callable[[], psycopg.Connection[Any]]


class Deaf(Exception):
    """Notifications do not arrive here: a pooler stands in between, or a right is missing, or a
    thread to hear them.
    """


@attrs.define(eq=False)
class _Ear:
    """A connection that listens, and the pipe that ends its thread."""

    conn: psycopg.Connection[Any]
    serve: Callable[[_Ear], None]
    bell: tuple[int, int] = attrs.field(factory=os.pipe, init=False)
    ready: selectors.BaseSelector = attrs.field(factory=selectors.DefaultSelector, init=False)
    thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.thread = threading.Thread(
            target=self.serve, args=[self], name="musterd-endings", daemon=True
        )
        for each in (self.conn.fileno(), self.bell[0]):
            self.ready.register(each, selectors.EVENT_READ)

    def heard(self, seconds_max: float) -> list[str] | None:
        """What was said, nothing if nothing was; None = the bell was rung. Raises psycopg's errors
        where the connection has broken.
        """
        found = [key.fd for key, _ in self.ready.select(seconds_max)]
        if self.bell[0] in found:
            return None
        if found:
            self.conn.pgconn.consume_input()
        said: list[str] = []
        while (one := self.conn.pgconn.notifies()) is not None:
            said.append(one.extra.decode("utf-8", "replace"))
        return said

    def ring(self) -> None:
        os.write(self.bell[1], b".")

    def close(self) -> None:
        self.ready.close()
        for each in self.bell:
            os.close(each)
        self.conn.close()


class Endings:
    """`connect` gives a connection in autocommit; raises the store's errors. All methods may be
    called from several threads at once.
    """

    def __init__(self, schema: str, connect: Connect) -> None:
        self._schema, self._connect = schema, connect
        self._expected: dict[int, set[Future[None]]] = {}
        self._ear: _Ear | None = None
        self._deaf = False
        self._lock = threading.Lock()

    def expect(self, job_id: int, signal: Future[None]) -> None:
        """From now on `signal` is done when the job ends, or when the connection breaks, so that
        somebody looks. Raises `Deaf`.
        """
        with self._lock:
            if self._deaf:
                raise Deaf
            if self._ear is None:
                self._ear = self._listening()
            self._expected.setdefault(job_id, set()).add(signal)

    def forget(self, job_id: int, signal: Future[None]) -> None:
        with self._lock:
            expected = self._expected.get(job_id, set())
            expected.discard(signal)
            if not expected:
                self._expected.pop(job_id, None)

    def close(self) -> None:
        """Those who wait are told, and look."""
        with self._lock:
            ear, self._ear = self._ear, None
            if ear is not None:  # its thread closes it, and takes it from here first
                ear.ring()
        if ear is not None:
            ear.thread.join()

    def _listening(self) -> _Ear:
        conn = self._connect()
        try:
            channel = self._channel(conn)
            name = sql.Identifier(channel + ENDED)
            conn.execute(sql.SQL("listen {}").format(name))
        except psycopg.errors.InsufficientPrivilege:
            conn.close()
            raise self._is_deaf() from None
        except BaseException:
            conn.close()
            raise
        ear = _Ear(conn, self._serve)
        try:
            ear.thread.start()
        except RuntimeError as error:
            ear.close()
            raise Deaf from no_thread(error)  # the next who waits tries again
        return ear

    def _channel(self, conn: psycopg.Connection[Any]) -> str:
        wanted = CHANNEL.format(schema=f'"{self._schema}"').encode()
        with psycopg.Cursor(conn, row_factory=tuple_row) as cursor:
            process, channel = cursor.execute(wanted).fetchall()[0]
        if process != conn.info.backend_pid:  # that of a pooler is of its own making
            raise self._is_deaf()
        return str(channel)

    def _is_deaf(self) -> Deaf:
        self._deaf = True
        return Deaf()

    def _serve(self, ear: _Ear) -> None:
        """The thread. It ends with its connection, by the bell, or because nobody waits."""
        try:
            while (said := ear.heard(IDLE_SECONDS)) is not None:
                if not said and self._is_idle(ear):
                    break
                self._publish(int(one) for one in said if one.isdecimal())
        except psycopg.Error:
            pass  # whoever waits is told, looks, and meets the trouble there
        finally:
            with self._lock:
                if self._ear is ear:
                    self._ear = None
                waiting = list(self._expected)
            ear.close()
            self._publish(waiting)

    def _is_idle(self, ear: _Ear) -> bool:
        with self._lock:
            if self._expected:
                return False
            if self._ear is ear:
                self._ear = None
            return True

    def _publish(self, jobs: Iterable[int]) -> None:
        with self._lock:
            signals = [one for job_id in jobs for one in self._expected.pop(job_id, ())]
        for one in signals:
            with suppress(InvalidStateError):  # given up by whoever waited
                one.set_result(None)


@attrs.define(eq=False)
class ListeningWatch:
    """See `store.watching.Watch`. `mark`: has the end of the job said. Where nobody can hear that,
    it looks again after pauses.
    """

    job_id: int
    endings: Endings
    mark: Callable[[int], None]
    read: Callable[[], JobRecord | None]
    _signal: Future[None] = attrs.field(factory=Future[None], init=False)
    _pauses: Pauses | None = attrs.field(default=None, init=False)

    def look(self) -> JobRecord | None:
        if self._pauses is None:
            self._listen()
        return self.read()

    def rest(self, seconds_max: float) -> Rest:
        if self._pauses is not None:
            return self._pauses.rest(seconds_max)
        return Rest(self._signal, min(seconds_max, LOOK_SECONDS))

    def end(self) -> None:
        self.endings.forget(self.job_id, self._signal)

    def _listen(self) -> None:
        self.end()
        self._signal = Future()
        try:
            self.endings.expect(self.job_id, self._signal)
            self.mark(self.job_id)
        except Deaf:
            self.end()
            self._pauses = Pauses(self.read)
