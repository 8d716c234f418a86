"""Hostile sharers of the store: a weak role of PostgreSQL, and whoever may open an SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from musterd import Client
from musterd.store.errors import StoreError
from musterd.store.postgres.migrating import apply_roles, role_names
from tests.neighbours.scene import Act, Scene

SAID = ("", "9" * 5_000, "-1", "duties", "x" * 7_900, "\u202e0", "1 or 1", "9223372036854775808")
ROWS = (
    "(kind, run_at) values ('noop', '-infinity')",
    "(kind, run_at) values ('noop', '4000-01-01 BC')",
    "(kind, run_at) values ('noop', '9999-12-31 23:59:59+00')",
    "(kind, priority) values ('noop', 40000)",
    "(kind, payload) values ('noop', '1e400')",
    """(kind, payload) values ('noop', '{"a": "\\u0000"}')""",
    "(kind, payload) values ('noop', (repeat('[', 300) || repeat(']', 300))::jsonb)",
    "(kind, payload) values ('nobody-knows', '[]')",
    "(kind, target) values ('noop', repeat('t', 200))",
    "(kind, dedup_key) values ('noop', 'same')",
    "(kind, max_attempts) values ('noop', 2147483647)",
    "(kind, webhook) values ('noop', 'http://127.0.0.1:1/')",
)
FORBIDDEN = (
    "update musterd.job_rows set state = 'succeeded'",
    "delete from musterd.job_rows",
    "truncate musterd.leases",
    "lock table musterd.job_rows in access exclusive mode",
    "alter table musterd.job_rows disable trigger all",
    "update musterd.jobs set kind = 'noop'",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user",
    "notify musterd",
)


@contextmanager
def weak_role(url: str) -> Generator[str]:
    """The URL of one that may enqueue and act, and nothing else. Gone after the block."""
    apply_roles(url, "musterd")
    name = conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, autocommit=True) as owner:
        role = f"shop_{name}"
        enqueue = role_names("musterd")["enqueue"]
        owner.execute(f"create role {role} login password 'secret' in role {enqueue}".encode())
        owner.execute(f"grant insert on musterd.jobs to {role}".encode())  # as docs/sql.md has it
        try:
            yield make_conninfo(url, user=role, password="secret")
        finally:
            owner.execute(f"drop owned by {role}; drop role {role}".encode())


@contextmanager
def session(scene: Scene) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(scene.weak_url, autocommit=True) as conn:
        conn.execute("set statement_timeout = '5s'")
        yield conn


def notify(scene: Scene, rng: Random) -> None:
    """On every channel that can be found, one of them the daemon's own: as if it had leaked."""
    with psycopg.connect(scene.innocents.url, autocommit=True) as owner:
        found = owner.execute("select name from musterd.hint_channel").fetchall()
    names = ["musterd", *(name for (name,) in found), *(f"{name}_ended" for (name,) in found)]
    with session(scene) as conn:
        while not scene.is_over:
            conn.execute("select pg_notify(%s, %s)", (rng.choice(names), rng.choice(SAID)))


def insert_odd_rows(scene: Scene, rng: Random) -> None:
    with session(scene) as conn:
        while not scene.is_over:
            with contextlib.suppress(psycopg.Error):
                conn.execute(f"insert into musterd.jobs {rng.choice(ROWS)}".encode())
            scene.wait(0.05)


def do_what_is_forbidden(scene: Scene, rng: Random) -> None:
    with session(scene) as conn:
        while not scene.is_over:
            with contextlib.suppress(psycopg.Error):
                conn.execute(rng.choice(FORBIDDEN).encode())
            scene.wait(0.02)


def hold_a_transaction(scene: Scene, rng: Random) -> None:
    """Makes and cancels jobs, and those of others, and does not end it."""
    with session(scene) as conn:
        conn.execute("begin")
        conn.execute("insert into musterd.jobs (kind, target) values ('noop', 'held')")
        conn.execute("select musterd.enqueue('noop')")
        if scene.strangers:
            with contextlib.suppress(psycopg.Error):
                conn.execute("select musterd.cancel(%s)", (rng.choice(scene.strangers),))
        scene.wait(60)
        conn.execute("rollback")


def take_advisory_locks(scene: Scene, rng: Random) -> None:
    with session(scene) as conn:
        for key in (*range(-50, 50), *(rng.getrandbits(31) for _ in range(200))):
            conn.execute("select pg_try_advisory_lock(%s)", (key,))
        conn.execute("select pg_try_advisory_lock(hashtext('musterd'))")
        scene.wait(60)


def hold_a_snapshot(scene: Scene, rng: Random) -> None:
    with session(scene) as conn:
        conn.execute("begin isolation level repeatable read")
        conn.execute("select count(*) from pg_class")
        scene.wait(60)


def hold_the_file(scene: Scene, rng: Random) -> None:
    """Whoever may open the file may write it: for a moment at a time, again and again."""
    path = scene.innocents.url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=2)) as conn:
        while not scene.is_over:
            with contextlib.suppress(sqlite3.OperationalError):
                conn.execute("begin immediate")
                scene.wait(rng.uniform(0.05, 0.5))
                conn.execute("rollback")
            scene.wait(0.1)


def read_for_long(scene: Scene, rng: Random) -> None:
    """The log cannot be put back into the file meanwhile."""
    path = scene.innocents.url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("begin")
        conn.execute("select count(*) from sqlite_master").fetchone()
        scene.wait(60)


def enqueue_odd_jobs(scene: Scene, rng: Random) -> None:
    """By the client, which refuses most of them."""
    odd: tuple[Any, ...] = (
        float("nan"), "\ud800", "\0", b"bytes", 10**5_000, {"a": {1, 2}}, "x" * 2_000_000, {1: 2},
    )  # fmt: skip
    with Client(scene.innocents.url) as client:
        while not scene.is_over:
            with contextlib.suppress(StoreError, ValueError, TypeError):
                client.enqueue("noop", rng.choice(odd), priority=rng.choice((0, 40_000, -(10**20))))
            scene.wait(0.05)


ON_SQLITE: tuple[Act, ...] = (hold_the_file, read_for_long, enqueue_odd_jobs)
ON_POSTGRESQL: tuple[Act, ...] = (
    notify, insert_odd_rows, do_what_is_forbidden, hold_a_transaction, take_advisory_locks,
    hold_a_snapshot, enqueue_odd_jobs,
)  # fmt: skip
