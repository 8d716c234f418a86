"""Sessions of PostgreSQL that a test stops inside their transactions, and lets go on one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import attrs
import psycopg
import trio

from musterd.store.postgres.migrating import PACKAGE
from musterd.store.postgres.statements import Params, fill
from musterd.store.sqlfiles import load_statements
from tests.contract.rigs import SCHEMA, PostgresRig, opened

SQL = {name: fill(text, SCHEMA).encode() for name, text in load_statements(PACKAGE).items()}
PATIENCE_SECONDS = 10.0
BLOCKED = b"select cardinality(pg_blocking_pids(%s)) > 0"

Connection = psycopg.Connection[Any]
Row = tuple[Any, ...]


class Sent(Protocol):
    """What is done in a transaction, one after the other."""

    def run(self, conn: Connection) -> list[Row]: ...


@attrs.frozen
class Statement:
    """One of the product's, with its values."""

    name: str
    params: Params

    def run(self, conn: Connection) -> list[Row]:
        cursor = conn.cursor(binary=True).execute(SQL[self.name], self.params)
        return cursor.fetchall() if cursor.description else []


def statement_of(call: Callable[[Any], Awaitable[Any]]) -> Statement:
    """What the product sends when it makes this call of a part, given what runs its statements."""
    sent: list[Statement] = []

    def run(name: str, params: Params) -> _AtOnce:
        sent.append(Statement(name, params))
        return _AtOnce()

    for _ in call(run).__await__():
        raise AssertionError("it waits for more than one statement")
    (one,) = sent
    return one


class _AtOnce:
    """What was awaited is there, and says that nothing was changed."""

    def __await__(self) -> Generator[None, None, list[Row]]:
        yield from ()
        return [(False, None)]


@contextmanager
def stopped_sessions(database: str, count: int) -> Generator[tuple[Connection, list[Connection]]]:
    """A fresh store in this database: a connection that commits at once, and `count` others."""
    rig = PostgresRig(database)
    trio.run(migrate, rig)
    with psycopg.connect(rig.url, autocommit=True) as main, sessions(rig.url, count) as nodes:
        main.execute(f"set search_path = {SCHEMA}".encode())
        yield main, nodes


async def migrate(rig: PostgresRig) -> None:
    async with opened(rig):
        pass


@contextmanager
def sessions(url: str, count: int) -> Generator[list[Connection]]:
    """Connections whose transactions end when the test says so."""
    with ExitStack() as stack:
        yield [stack.enter_context(psycopg.connect(url)) for _ in range(count)]


@attrs.define
class Running:
    """A transaction under way on a thread of its own: it commits as soon as it has done all."""

    conn: Connection
    statements: Sequence[Sent]
    found: list[list[Row]] = attrs.field(factory=list[list[Row]])
    wrong: list[Exception] = attrs.field(factory=list[Exception])
    thread: threading.Thread = attrs.field(init=False)

    def start(self) -> Running:
        self.thread = threading.Thread(target=self._work)
        self.thread.start()
        return self

    def end(self) -> list[list[Row]]:
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive(), "it waits for ever"
        assert self.wrong == [], self.wrong
        return self.found

    def _work(self) -> None:
        try:
            self.found += [one.run(self.conn) for one in self.statements]
            self.conn.commit()
        except psycopg.Error as error:
            self.conn.rollback()
            self.wrong.append(error)


def until_blocked_or_done(main: Connection, running: Running) -> None:
    """It has gone as far as it can while others stand where they are."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while running.thread.is_alive() and not _is_blocked(main, running.conn):
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def _is_blocked(main: Connection, conn: Connection) -> bool:
    row = main.execute(BLOCKED, [conn.info.backend_pid]).fetchone()
    assert row is not None
    return bool(row[0])
