"""Queues in a file of the embedded engine."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import attrs
import trio

from musterd.config.load import load
from musterd.store.opening import make_engine
from tests.bench.growth.draining import Gate

FILL = """
with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
insert into job_rows (kind, payload, created_at, run_at)
select 'note', json_object('i', i), i, i from n
"""
QUEUED = "select number from job_counts where name = 'queued'"


@attrs.frozen
class File:
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def top_up(self, depth: int) -> None:
        with closing(sqlite3.connect(self.path)) as conn, conn:
            (queued,) = conn.execute(QUEUED).fetchone()
            if queued < depth:
                conn.execute(FILL, [depth - queued])

    def gate(self) -> Gate:
        """Nothing holds it: what a daemon needs to start does not count anyway."""
        return Gate(ready=lambda: True, open=_nothing, close=_nothing, served=dict)


@contextmanager
def file(name: str) -> Generator[File]:
    """A file with the schema, and nothing in it; gone at the end."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        made = File(Path(folder) / f"{name}.db")
        trio.run(_make, made.url)
        yield made


async def _make(url: str) -> None:
    engine = make_engine(url, load(None, {}, []).settings, lambda: 1_700_000_000.0)
    await engine.open()
    await engine.migrate()
    await engine.close()


def _nothing() -> None:
    return None
