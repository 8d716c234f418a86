"""`musterd doctor`, as an operator meets it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support import pgbouncer
from tests.support.command import Done, Home, eventually
from tests.support.findings import NAMES
from tests.support.http_client import ask
from tests.support.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """As an operator has it: it writes to disk, and takes transactions in two phases."""
    with PostgresServer(fsync="on", full_page_writes="on", max_prepared_transactions="5") as made:
        yield made


@pytest.fixture(scope="module")
def template(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the schema in it, to be copied."""
    url = server.create_database("jobs_template")
    assert Home(tmp_path_factory.mktemp("made"), url).call("db", "migrate").code == 0
    return "jobs_template"


@pytest.fixture
def home(server: PostgresServer, template: str, tmp_path: Path) -> Iterator[Home]:
    name = f"jobs_{tmp_path.name.replace('-', '_').lower()[:40]}"
    yield Home(tmp_path / "state", server.create_database(name, template))
    server.drop_database(name)


def findings(done: Done) -> dict[str, list[dict[str, Any]]]:
    """By name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in done.json["checks"]:
        assert set(one) == {"name", "level", "found", "wanted", "advice", "group", "tenant"}
        assert one["level"] == "ok" or (one["wanted"] and one["advice"]), one
        assert one["name"] in NAMES
        found.setdefault(one["name"], []).append(one)
    return found


def levels(found: dict[str, list[dict[str, Any]]], *but: str) -> set[str]:
    return {one["level"] for name, ones in found.items() if name not in but for one in ones}


def test_all_is_well_around_a_running_daemon(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        done = home.call("doctor", "--json")
        found = findings(done)
        assert done.code == 0, found
        assert levels(found) == {"ok"}, found
        assert {"leases", "kinds", "systemd", "store", "schema", "server", "durability"} <= set(
            found
        )
        assert {"pooler", "clock", "horizon", "autovacuum", "dead rows", "rights"} <= set(found)
        assert done.json["verdict"].startswith("all is well")
        told = home.call("doctor")
        assert told.out.splitlines()[-1].startswith("all is well")
        assert "\n  ok    pooler: none" in told.out


def test_all_is_well_around_an_embedded_store(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    first = home.call("doctor", "--json")
    assert levels(findings(first), "disk") == {"ok"}  # the machine of the tests may be full
    assert "there is no file yet" in findings(first)["store"][0]["found"]
    assert not (tmp_path / "state").exists()  # a doctor makes nothing
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        found = findings(home.call("doctor", "--json"))
        assert levels(found, "file system", "disk") == {"ok"}, found
        assert f"process {daemon.process.pid} holds it" in found["file"][0]["found"]


def test_vitals_are_among_the_metrics(home: Home, tmp_path: Path) -> None:
    names = {"horizon_age_seconds", "dead_rows", "size_bytes"}
    assert exported(home) == names
    assert exported(Home(tmp_path / "embedded")) == {"size_bytes"}


def exported(home: Home) -> set[str]:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        pattern = re.compile(r'^musterd_store_(\w+){tenant="default"} ', re.MULTILINE)
        found: set[str] = set()

        def is_there() -> bool:
            found.update(pattern.findall(ask(daemon.address, "/metrics").text))
            return bool(found)

        eventually(is_there)
        return found


def test_a_damaged_file_is_a_failure(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    assert home.call("enqueue", "noop", "--count", "2000").code == 0
    file = tmp_path / "state" / "musterd.db"
    for wal in file.parent.glob("musterd.db-*"):
        wal.unlink()
    whole = file.read_bytes()
    half = len(whole) // 2
    file.write_bytes(whole[:half] + b"\xff" * 8192 + whole[half + 8192 :])
    done = home.call("doctor", "--json")
    assert done.code == 1
    assert findings(done)["file"][0]["level"] == "fail"


def test_who_holds_the_horizon_is_named(home: Home) -> None:
    with psycopg.connect(home.store_url, application_name="nightly report") as session:
        session.execute("set transaction isolation level repeatable read")
        session.execute("select count(*) from musterd.job_rows")
        burn(home.store_url, 100_000)
        done = home.call("doctor", "--json")
        (held,) = findings(done)["horizon"]
        assert held["level"] == "warn"
        assert f"the session with pid {session.info.backend_pid}" in held["found"]
        assert "nightly report, idle in transaction" in held["found"]
        assert f"select pg_terminate_backend({session.info.backend_pid})" in held["advice"]


def burn(url: str, count: int) -> None:
    """Uses up transactions."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("set synchronous_commit = off")
        session.execute(
            "create procedure burn(count int) language plpgsql as $$ begin"
            " for _ in 1..count loop perform txid_current(); commit; end loop; end $$"
        )
        session.execute("call burn(%s)", [count])


def test_a_prepared_transaction_and_a_slot_are_named(home: Home) -> None:
    with psycopg.connect(home.store_url, autocommit=True) as session:
        session.execute("begin")
        session.execute("create table held (id int)")
        session.execute("prepare transaction 'from-the-shop'")
        session.execute("select pg_create_physical_replication_slot('left_behind', true)")
        try:
            found = findings(home.call("doctor", "--json"))
        finally:
            session.execute("rollback prepared 'from-the-shop'")
            session.execute("select pg_drop_replication_slot('left_behind')")
    assert "the prepared transaction from-the-shop" in found["horizon"][0]["found"]
    assert found["replication"][0]["level"] == "warn"
    assert "pg_drop_replication_slot('left_behind')" in found["replication"][0]["advice"]


def test_what_is_wrong_with_server_and_tables_is_named(home: Home) -> None:
    database = conninfo_to_dict(home.store_url)["dbname"]
    with psycopg.connect(home.store_url, autocommit=True) as session:
        for statement in (
            "alter table musterd.job_rows set (autovacuum_enabled = false)",
            "alter table musterd.event_drafts reset (autovacuum_vacuum_threshold)",
            f"alter database {database} set synchronous_commit = off",
            f"alter database {database} connection limit 7",
        ):
            session.execute(statement.encode())
        done = home.call("doctor", "--json")
    found = findings(done)
    assert done.code == 1
    assert {one["level"] for one in found["autovacuum"]} == {"warn", "fail"}
    assert "job_rows" in found["autovacuum"][0]["found"] + found["autovacuum"][1]["found"]
    assert "synchronous_commit = off" in found["durability"][0]["found"]
    assert found["durability"][0]["level"] == "warn"
    assert "the database's limit leaves 7" in found["connections"][0]["found"]


def test_a_role_that_lacks_rights(home: Home) -> None:
    known = conninfo_to_dict(home.store_url)
    with psycopg.connect(home.store_url, autocommit=True) as session:
        session.execute("create role poor login password 'poor' connection limit 5")
        session.execute("grant usage on schema musterd to poor")
        session.execute("grant select on all tables in schema musterd to poor")
        try:
            url = f"postgresql://poor:poor@{known['host']}:{known['port']}/{known['dbname']}"
            done = home.call("doctor", "--json", "--set", f"store.url={url}")
        finally:
            session.execute("drop owned by poor")
            session.execute("drop role poor")
    found = findings(done)
    assert done.code == 1
    assert "role poor lacks" in found["rights"][0]["found"]
    assert "on table" in found["rights"][0]["found"]
    assert "pg_read_all_stats" in found["rights"][1]["advice"]
    assert "the role's limit" in found["connections"][0]["found"]
    assert "password" not in done.out
    assert "poor:poor" not in done.out


def test_through_a_pooler(home: Home, server: PostgresServer) -> None:
    database = conninfo_to_dict(home.store_url)["dbname"]
    with pgbouncer.running(server) as bouncer:
        url = bouncer.url(str(database))
        done = home.call("doctor", "--json", "--set", f"store.url={url}")
        (pooler,) = findings(done)["pooler"]
        assert done.code == 0, done.out
        assert pooler["level"] == "warn"
        assert "in transaction mode, and no store.listen_url" in pooler["found"]
        direct = ("--set", f"store.url={url}", "--set", f"store.listen_url={home.store_url}")
        (pooler,) = findings(home.call("doctor", "--json", *direct))["pooler"]
        assert pooler["level"] == "ok"


def test_a_store_that_cannot_be_reached_stops_nothing_else(tmp_path: Path) -> None:
    home = Home(tmp_path / "state", "postgresql://nobody:hidden-one@127.0.0.1:1/jobs")
    done = home.call("doctor", "--json")
    found = findings(done)
    assert done.code == 69
    assert found["store"][0]["level"] == "fail"
    assert {"leases", "kinds", "disk", "systemd"} <= set(found)
    assert "hidden-one" not in done.out + done.err


def test_a_store_that_does_not_take_us_in(home: Home) -> None:
    url = home.store_url.replace("://musterd:", "://musterd:wrong")
    done = home.call("doctor", "--json", "--set", f"store.url={url}")
    assert done.code == 78
    assert findings(done)["store"][0]["level"] == "fail"


def test_a_bad_configuration_is_told_as_everywhere(tmp_path: Path) -> None:
    done = Home(tmp_path / "state").call("doctor", "--set", "workers.max_count=0")
    assert done.code == 1
    assert "workers.max_count" in done.out


def test_files_that_anybody_reads(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("not-so-secret\n")
    token.chmod(0o644)
    done = Home(tmp_path / "state").call("doctor", "--json", "--set", f"http.token_file={token}")
    (found,) = findings(done)["permissions"]
    assert done.code == 1
    assert found["advice"] == f"chmod o-r {token}"
    assert "not-so-secret" not in done.out


def test_kinds_that_cannot_run_here(tmp_path: Path) -> None:
    catalog = tmp_path / "kinds.toml"
    catalog.write_text('[kinds.mail]\npython = "no_such_module:send"\n')
    done = Home(tmp_path / "state").call(
        "doctor", "--json", "--set", f'catalog.paths=["{catalog}"]'
    )
    assert findings(done)["kinds"][0]["level"] == "warn"
    assert "kind mail cannot run here" in findings(done)["kinds"][0]["found"]


def test_tenants_are_looked_at_one_by_one(home: Home) -> None:
    tenants = ("--set", "tenants.acme.workers.default_count=0")
    assert home.call("db", "migrate", "--tenant", "acme", *tenants).code == 0
    found = findings(home.call("doctor", "--json", *tenants))
    assert [one["tenant"] for one in found["rights"]] == ["default", "acme"]
    assert [one["tenant"] for one in found["server"]] == ["default"]  # they share it
    only = findings(home.call("doctor", "--json", "--tenant", "acme", *tenants))
    assert {one["tenant"] for ones in only.values() for one in ones} == {None, "acme"}
    assert home.call("doctor", "--tenant", "nobody", *tenants).code == 3


def test_what_the_daemon_runs_with_is_compared_with_the_files(tmp_path: Path) -> None:
    home, file = Home(tmp_path / "state"), tmp_path / "musterd.toml"
    file.write_text("[workers]\nlease_timeout_seconds = 30\n")
    with home.daemon("--config", str(file)) as daemon:
        daemon.wait_until_ready()
        here = ("--config", str(file), "--set", daemon.listen)
        assert ["http.listen" in one["found"] for one in told_by(home, *here)] == [True]
        file.write_text("[workers]\nlease_timeout_seconds = 6\nmax_count = 9\n")
        found = told_by(home, *here)
        told = {one["found"].split()[0]: one for one in found}
        lease, most = "workers.lease_timeout_seconds", "workers.max_count"
        assert set(told) == {"http.listen", lease, most}
        assert told[lease]["found"] == f"{lease} is 30 in the daemon, 6 in the files"
        assert told[lease]["advice"].startswith("restart the daemon")
        assert told[most]["advice"].startswith("musterd reload")
        leases = findings(home.call("doctor", "--json", *here))["leases"]
        assert "a lease of 30 s" in leases[0]["found"]  # what runs, not what the files say
        assert home.call("reload", "--wait", *here).code == 0
        left = {one["found"].split()[0] for one in told_by(home, *here)}
        assert left == {"http.listen", lease}


def test_a_daemon_that_cannot_be_asked(tmp_path: Path) -> None:
    (found,) = told_by(Home(tmp_path / "state"), "--set", "http.listen=127.0.0.1:1")
    assert found["level"] == "ok"
    assert "what follows is said of the files, not of what runs" in found["found"]


def told_by(home: Home, *arguments: str) -> list[dict[str, Any]]:
    return findings(home.call("doctor", "--json", *arguments))["configuration"]
