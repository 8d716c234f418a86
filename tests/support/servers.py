"""Daemons on several servers: the URL of all of them, a load that remembers what it was promised,
and the laws that hold whatever befell the servers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict

from musterd import Client
from musterd.store.errors import StoreUnavailable
from tests.support.postgres_server import PostgresServer

NEXT_SECONDS = 30.0
TOLD_TWICE = """
    select id, count(*) from (
        select unnest(job_ids) from musterd.event_log where type = 'job.succeeded' union all
        select unnest(job_ids) from musterd.event_drafts where type = 'job.succeeded') told (id)
    group by id having count(*) > 1
"""
Session = psycopg.Connection[Any]


def url_of(*servers: PostgresServer, database: str = "jobs") -> str:
    """One URL for all of them, in this order."""
    known = conninfo_to_dict(servers[0].dsn(database))
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://{known['user']}:{known['password']}@{hosts}/{database}"


def connect(server: PostgresServer, database: str = "jobs") -> Session:
    return psycopg.connect(server.dsn(database), autocommit=True)


class Load:
    """Jobs put in one batch after another while the block lasts, whatever the store does.
    `promised`: the ids that were answered.
    """

    def __init__(self, url: str, kind: str = "quick", batch: int = 10) -> None:
        self.promised: list[int] = []
        self.refusals = 0
        self._ending = threading.Event()
        self._asked = (url, kind, batch)
        self._thread = threading.Thread(target=self._put, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._ending.set()
        self._thread.join()

    def _put(self) -> None:
        url, kind, batch = self._asked
        payload: dict[str, Any] = {}
        with Client(url) as client:
            while not self._ending.wait(0.02):
                try:
                    self.promised += client.enqueue_many([(kind, payload)] * batch)
                except StoreUnavailable:
                    self.refusals += 1


def ended(session: Session) -> dict[int, Any]:
    """What is written of each job that has succeeded."""
    rows = session.execute(
        "select id, attempt, finished_at from musterd.jobs where state = 'succeeded'"
    )
    return {job: (attempt, at) for job, attempt, at in rows.fetchall()}


def count_ended(session: Session) -> int:
    row = session.execute("select count(*) from musterd.jobs where state = 'succeeded'").fetchone()
    assert row is not None
    return int(row[0])


def states(session: Session) -> dict[str, int]:
    rows = session.execute("select state, count(*) from musterd.jobs group by 1").fetchall()
    return dict(rows)


def seconds_to_next_end(session: Session, change: Callable[[], None] = lambda: None) -> float:
    """How long after a change of the servers one more job has ended, seen on this one."""
    before = count_ended(session)
    change()
    began = time.monotonic()
    while count_ended(session) == before:
        assert time.monotonic() < began + NEXT_SECONDS, "no job has ended since"
        time.sleep(0.02)
    return time.monotonic() - began


def check_ended_once(session: Session) -> None:
    """No job has two ends: none among its past attempts, none twice in the log of events."""
    past = session.execute("select * from musterd.attempts where outcome = 'succeeded'").fetchall()
    assert past == []
    assert session.execute(TOLD_TWICE).fetchall() == []
