"""The page on SQL is true: its examples run, its columns are there, and what it says is refused is
refused in those words.
"""

from collections.abc import Iterator

import psycopg
import pytest
import trio

from tests.contract.rigs import PostgresRig, opened
from tests.fix_postgres import FreshDatabase
from tests.support.pages import bare, blocks, page, table

PAGE = page("sql.md")
REFUSED = [(bare(values), bare(message)) for values, message in table(PAGE, "insert", "message")]

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def database(fresh_database: FreshDatabase) -> Iterator[Connection]:
    """A migrated store; all that a test does to it is undone, roles included."""
    url = fresh_database()
    trio.run(migrate, url)
    with psycopg.connect(url) as connection:
        yield connection
        connection.rollback()


async def migrate(url: str) -> None:
    async with opened(PostgresRig(url)):
        pass  # that is done when it is open


def run(database: Connection, statement: str) -> psycopg.Cursor[tuple[object, ...]]:
    return database.execute(statement.encode())


def statements() -> str:
    """Every example of the page, in one transaction, so that nothing of it stays."""
    text = "\n".join(block.text for block in blocks(PAGE, "sql"))
    return text.replace("begin;", "").replace("commit;", "")


def test_the_examples_run(database: Connection) -> None:
    run(database, statements())
    assert run(database, "select count(*) from musterd.jobs").fetchone() == (13,)


def test_the_columns_are_those_of_the_view(database: Connection) -> None:
    found = run(
        database,
        "select column_name, case data_type when 'timestamp with time zone' then 'timestamptz'"
        " else data_type end from information_schema.columns"
        " where table_schema = 'musterd' and table_name = 'jobs' order by ordinal_position",
    ).fetchall()
    told = [(bare(name), kind) for name, kind, *_ in table(PAGE, "column", "type", "insert")]
    assert told == found


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_what_is_refused(database: Connection, values: str, message: str) -> None:
    with pytest.raises(psycopg.DatabaseError) as caught:
        run(database, f"insert into musterd.jobs {values}")
    assert message in str(caught.value)


def test_the_rights_are_enough(database: Connection) -> None:
    run(database, statements())
    run(database, "set local role shop")
    run(database, "insert into musterd.jobs (kind) values ('report') returning id")
    run(database, "set local role viewer")
    run(database, "select 1 from musterd.jobs, musterd.queue_depth")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(database, "insert into musterd.jobs (kind) values ('report')")
