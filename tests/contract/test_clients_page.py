"""The page on clients is true: its examples run as they stand, in the user's transaction."""

from __future__ import annotations

import asyncio  # noqa: TID251 - what psycopg's async side runs on
import re
from typing import Any

import psycopg
import pytest
import trio

from musterd import AsyncClient, Client
from tests.contract.rigs import PostgresRig, opened
from tests.fix_postgres import FreshDatabase
from tests.support.pages import blocks, page

PYTHON = blocks(page("clients.md"), "python")
IN_SQL = re.findall(r'"(select musterd\.[^"]+)"', "\n".join(block.text for block in PYTHON))


@pytest.fixture
def url(fresh_database: FreshDatabase) -> str:
    found = fresh_database()

    async def migrate() -> None:
        async with opened(PostgresRig(found)):
            pass  # that is done when it is open

    trio.run(migrate)
    return found


def example(having: str) -> str:
    (found,) = (block.text for block in PYTHON if having in block.text)
    return found


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"line {block.line}")
def test_every_example_is_python(block: Any) -> None:
    compile(block.text, f"clients.md:{block.line}", "exec")


def test_the_clients_own_transaction(url: str) -> None:
    text = example("connection=connection)")
    asked = {"psycopg": Here(url), "order_id": 17}
    with psycopg.connect(url) as connection, Client(url) as client:
        connection.execute("create table orders (id int, paid bool)")
        connection.execute("insert into orders values (17, false)")
        connection.commit()
        exec(compile(text, "clients.md", "exec"), {"client": client, **asked})
        assert connection.execute("select paid from orders").fetchone() == (True,)
        job = client.job(1)
    assert (job["kind"], job["payload"], job["state"]) == ("receipt", {"order": 17}, "queued")


def test_the_async_clients_own_transaction(url: str) -> None:
    text = example("connection=conn)")

    async def main() -> None:
        async with AsyncClient(url) as client:
            names: dict[str, Any] = {"client": client, "psycopg": Here(url)}
            exec(compile(text, "clients.md", "exec"), names)
            await names["pay"](17)
            assert (await client.job(1))["payload"] == {"order": 17}

    with psycopg.connect(url) as connection:
        connection.execute("create table orders (id int, paid bool)")
    asyncio.run(main())


@pytest.mark.parametrize("statement", IN_SQL)
def test_what_other_frameworks_send(url: str, statement: str) -> None:
    values = ['{"order": 17}', "receipt-17"][: statement.count("%s")]
    with psycopg.connect(url) as connection:
        assert connection.execute(statement.encode(), values).fetchone() == (1,)


def test_there_is_an_example() -> None:
    assert len(IN_SQL) == 1


class Here:
    """psycopg, whose connections go to this database whatever the page names."""

    def __init__(self, url: str) -> None:
        self._url = url

    def connect(self, _named: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self._url)

    @property
    def AsyncConnection(self) -> HereAsync:  # noqa: N802 - as psycopg calls it
        return HereAsync(self._url)


class HereAsync:
    def __init__(self, url: str) -> None:
        self._url = url

    async def connect(self, _named: str) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        return await psycopg.AsyncConnection.connect(self._url)
