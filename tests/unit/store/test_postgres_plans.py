"""Statements that must not grow dear with the queue, whatever values they are sent with."""

import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

import psycopg
import pytest
import trio

from musterd.store.postgres.migrating import fill
from musterd.store.sqlfiles import load_statements
from tests.contract.rigs import SCHEMA, PostgresRig, opened


@pytest.fixture
async def rig(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig, Any]:
    async with opened(PostgresRig(fresh_database())) as ready:
        assert isinstance(ready, PostgresRig)
        yield ready


def plan(rig: PostgresRig, name: str, values: dict[str, str]) -> str:
    """The plan for any values, as the daemon's sessions make it."""
    text = fill(load_statements("musterd.store.postgres")[name], SCHEMA)
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    for number, each in enumerate(names, start=1):
        text = text.replace(f"%({each})s", f"${number}")
    sent = ", ".join(values.get(each, "null") for each in names)
    with psycopg.connect(rig.url, prepare_threshold=None) as connection:
        connection.execute("set plan_cache_mode = force_generic_plan")
        connection.execute(f"prepare asked as {text}".encode())
        lines = connection.execute(f"explain execute asked({sent})".encode()).fetchall()
    return "\n".join(line for (line,) in lines)


async def test_an_old_job_and_a_later_page_are_looked_up(rig: PostgresRig) -> None:
    """Not found by a walk from the newest one."""
    await trio.lowlevel.checkpoint()
    found = plan(rig, "jobs", {"id": "1", "bound": "1"})
    (condition,) = re.findall(r"Index Cond: (.*)", found)
    assert condition.count("COALESCE") == 3
    assert "id >=" in condition
    assert condition.count("id <") == 2
