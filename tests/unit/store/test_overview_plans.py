"""The board walks along indexes on both engines, whatever is asked of it."""

import re
import sqlite3
from collections.abc import Callable

import psycopg
import pytest
import trio

from musterd.store.lifecycle import JobState
from musterd.store.overview import OverviewFilter
from musterd.store.postgres.statements import fill
from musterd.store.sqlfiles import load_statements, shipped
from musterd.store.sqlite.overview import sorts
from tests.contract.rigs import SCHEMA, PostgresRig, opened

ALL = OverviewFilter(tuple(JobState))
INDEXES = ("ready_order", "waiting_order", "job_rows_resting", "job_rows_pkey")
VALUES = {"kind": "null", "target": "null", "resting": "'{failed}'"}


@pytest.mark.parametrize("sort", list(sorts(ALL)), ids=lambda sort: str(sort[0]))
def test_sqlite_looks_at_no_more_than_the_span(sort: tuple[str, str, str]) -> None:
    which, order, shown = sort
    connection = sqlite3.connect(":memory:")
    for migration in shipped("musterd.store.sqlite"):
        connection.executescript(migration.sql)
    text = load_statements("musterd.store.sqlite")["overview"]
    names = ("span", "bound", "kind", "target", "note", "text")
    values: dict[str, None] = dict.fromkeys(names)
    asked = text.format(which=which, order=order, shown=shown)
    steps = [row[3] for row in connection.execute(f"explain query plan {asked}", values)]
    connection.close()
    (look,) = [step for step in steps if "job_rows" in step]
    assert "job_rows_" in look or which == "true"
    # What is put in order is what the look gave, not the table.
    assert steps.index(look) < min(
        (place for place, step in enumerate(steps) if "TEMP B-TREE" in step), default=99
    )


async def test_postgresql_uses_the_index_of_each_sort(fresh_database: Callable[[], str]) -> None:
    async with opened(PostgresRig(fresh_database())) as rig:
        assert isinstance(rig, PostgresRig)
        await trio.lowlevel.checkpoint()
        rig.raw(
            """set session_replication_role = replica;
            insert into job_rows (kind, state, finished_at)
            select 'a', (array['succeeded', 'failed'])[n % 2 + 1], clock_timestamp()
            from generate_series(1, 5000) n;
            insert into job_rows (kind) select 'a' from generate_series(1, 5000);
            analyze job_rows"""
        )
        rig.tampered = True  # they stand nowhere
        text = fill(load_statements("musterd.store.postgres")["overview"], SCHEMA)
        for name in re.findall(r"%\((\w+)\)s", text):
            text = text.replace(f"%({name})s", VALUES.get(name, "true" if name in FLAGS else "50"))
        with psycopg.connect(rig.url) as connection:
            found = connection.execute(f"explain {text}".encode()).fetchall()
    plan = "\n".join(line for (line,) in found)
    assert "Seq Scan on job_rows" not in plan
    assert [index for index in INDEXES if index not in plan] == []


FLAGS = {"leased", "queued", "succeeded"}
