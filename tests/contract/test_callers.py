"""Jobs in the transaction of a connection that is the caller's: SQLAlchemy's, blocking and async,
over the drivers that people use.
"""

import asyncio  # noqa: TID251 - what SQLAlchemy's async side runs on
from typing import Any

import pytest
import trio

from musterd import AsyncClient, Client, InputRefused
from tests.contract.rigs import PostgresRig, opened
from tests.fix_postgres import FreshDatabase

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is missing: make .venv/dev.stamp installs it")

from sqlalchemy import create_engine, orm, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)

SELECT = text("select count(*) from musterd.job_rows")
MANY: list[tuple[str, Any]] = [("b", number) for number in range(1_100)]
OPTIONS: dict[str, Any] = {
    "priority": 3,
    "target": "a:b %s :jobs",
    "delay_seconds": 0.5,
    "dedup_key": "k",
    "dedup_scope": 60,
}


@pytest.fixture
def url(fresh_database: FreshDatabase) -> str:
    found = fresh_database()

    async def migrate() -> None:
        async with opened(PostgresRig(found)):
            await trio.lowlevel.checkpoint()

    trio.run(migrate)
    return found


def with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


def test_a_session_and_a_connection_of_sqlalchemy(url: str) -> None:
    engine = create_engine(with_driver(url, "psycopg"))
    with Client(url) as client:
        with orm.Session(engine) as session:
            client.enqueue("a", connection=session)
            session.rollback()
            kept = client.enqueue("a", {"x": ["ü:y %s", 1.5]}, connection=session, **OPTIONS)
            assert client.enqueue("a", dedup_key="k", connection=session) == kept
            assert session.execute(SELECT).scalar() == 1
            session.commit()
        job = client.job(kept)
        assert (job["payload"], job["priority"]) == ({"x": ["ü:y %s", 1.5]}, 3)
        assert (job["target"], job["dedup_key"]) == ("a:b %s :jobs", "k")
        with engine.begin() as connection:
            many = client.enqueue_many(MANY, connection=connection)
            assert (len(many), many) == (1_100, sorted(many))
        scoped = orm.scoped_session(orm.sessionmaker(engine))
        assert client.job(many[-1])["payload"] == 1_099
        client.enqueue("c", connection=scoped)
        scoped.commit()
        scoped.remove()
        with engine.connect() as connection, pytest.raises(InputRefused, match="unknown option"):
            client.enqueue("a", prio=3, connection=connection)
        with orm.Session(engine) as session:
            assert session.execute(SELECT).scalar() == 1_102
    engine.dispose()


def test_what_the_server_refuses_is_said_by_sqlalchemy(url: str) -> None:
    engine = create_engine(with_driver(url, "psycopg"))
    with (
        Client(url, schema="elsewhere") as client,
        engine.connect() as connection,
        pytest.raises(ProgrammingError, match="elsewhere"),
    ):
        client.enqueue("a", connection=connection)
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_async_session_and_connection_of_sqlalchemy(url: str, driver: str) -> None:
    async def main() -> None:
        engine = create_async_engine(with_driver(url, driver))
        async with AsyncClient(url) as client:
            async with AsyncSession(engine) as session:
                await client.enqueue("a", connection=session)
                await session.rollback()
                kept = await client.enqueue("a", {"x": "ü:y"}, connection=session, **OPTIONS)
                await session.commit()
            async with engine.begin() as connection:
                many = await client.enqueue_many(MANY, connection=connection)
            assert (await client.job(kept))["payload"] == {"x": "ü:y"}
            assert (await client.job(many[-1]))["payload"] == 1_099
            scoped = async_scoped_session(async_sessionmaker(engine), asyncio.current_task)
            await client.enqueue("c", connection=scoped)
            await scoped.commit()
            await scoped.remove()
            async with engine.connect() as connection:
                assert (await connection.execute(SELECT)).scalar() == 1_102
                with Client(url) as other, pytest.raises(InputRefused, match="AsyncClient takes"):
                    other.enqueue("a", connection=connection)
        await engine.dispose()

    asyncio.run(main())


def test_another_database_and_what_is_no_connection_are_refused(url: str) -> None:
    elsewhere = create_engine("sqlite://")
    engine = create_engine(with_driver(url, "psycopg"))

    async def ask(connection: Any) -> None:
        await AsyncClient(url).enqueue("a", connection=connection)

    with Client(url) as client, elsewhere.connect() as connection:
        with pytest.raises(InputRefused, match="found one to sqlite, wanted one to the PostgreSQL"):
            client.enqueue("a", connection=connection)
        with pytest.raises(InputRefused, match=r"found sqlalchemy.*Engine, wanted"):
            client.enqueue("a", connection=engine)
        with pytest.raises(InputRefused, match=r"wanted .*AsyncSession: Client takes it"):
            asyncio.run(ask(connection))
    for one in (elsewhere, engine):
        one.dispose()
