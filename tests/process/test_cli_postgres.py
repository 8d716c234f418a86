"""What is different with a PostgreSQL: somebody has to make its schema, and it may refuse."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.command import Home


@pytest.fixture
def server(tmp_path: Path, fresh_database: Callable[[], str]) -> Home:
    """A machine whose store is a database of its own, still empty."""
    return Home(tmp_path / "state", fresh_database())


@pytest.mark.parametrize("verb", [("jobs",), ("job", "1"), ("status", "--set", "http.listen=")])
def test_readers_make_no_schema_but_say_how_one_is_made(
    server: Home, verb: tuple[str, ...]
) -> None:
    done = server.call(*verb)
    assert (done.code, done.out) == (78, "")
    assert "there is no schema yet" in done.err
    assert "`musterd db migrate`" in done.err


def test_the_first_writer_makes_the_schema(server: Home) -> None:
    assert server.call("enqueue", "report", "--json").json["id"] == 1
    assert [job["id"] for job in server.call("jobs", "--json").lines] == [1]
    assert server.call("db", "status", "--json").json["current"] is True


def test_no_writer_makes_it_where_that_is_forbidden(server: Home) -> None:
    forbidden = ("--set", "store.migrate=false")
    assert server.call("queue", "pause", *forbidden).code == 78
    assert server.call("db", "migrate").code == 0
    assert server.call("queue", "pause", *forbidden).code == 0


def test_a_newer_schema_is_left_alone(server: Home) -> None:
    server.call("db", "migrate")
    with psycopg.connect(server.store_url, autocommit=True) as connection:
        connection.execute(
            "insert into musterd.schema_migrations (number, name, checksum)"
            " values (9999, '9999_future', 'x')"
        )
    for verb in (("enqueue", "noop"), ("jobs",), ("db", "migrate")):
        done = server.call(*verb)
        assert (done.code, "9999" in done.err) == (78, True), done


def changed(url: str, **parts: str) -> str:
    """Gives the URL with `host`, `user` or the like replaced, in the keyword form behind `?`."""
    return f"postgresql://?{urlencode({**conninfo_to_dict(url), **parts})}"


@pytest.mark.parametrize("wrong", [{"dbname": "no_such_database"}, {"password": "wr0ng"}])
def test_a_server_that_refuses_is_a_fault_of_the_configuration(
    server: Home, wrong: dict[str, str]
) -> None:
    done = server.call("jobs", "--set", f"store.url={changed(server.store_url, **wrong)}")
    assert (done.code, "Traceback" in done.err) == (78, False), done
    assert "wr0ng" not in done.err


def test_a_daemon_makes_the_schema_and_works(server: Home) -> None:
    with server.daemon() as daemon:
        daemon.wait_until_ready()
        assert server.call("enqueue", "flaky", "--wait").code == 0
        assert server.call("status", "--set", daemon.listen).code == 0


def test_roles_are_printed_or_made(server: Home) -> None:
    wanted = ["musterd_daemon", "musterd_enqueue", "musterd_read"]
    server.call("db", "migrate")
    printed = server.call("db", "roles")
    with psycopg.connect(server.store_url) as connection:
        connection.execute(printed.out.encode())
        assert [*roles_of(connection)] == wanted
        connection.rollback()
        with_rights = "select has_schema_privilege('musterd_read', 'musterd', 'usage')"
        for _ in range(2):  # again, to no harm
            made = server.call("db", "roles", "--apply", "--json").json["roles"]
            assert made == wanted
            assert connection.execute(with_rights.encode()).fetchone() == (True,)


def roles_of(connection: psycopg.Connection[tuple[object, ...]]) -> list[object]:
    found = connection.execute(
        "select rolname from pg_roles where rolname like 'musterd\\_%' order by 1"
    )
    return [name for (name,) in found]
