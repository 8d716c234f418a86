"""Tenants on a real daemon: served, named on the command line, added and removed by a reload."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path

import attrs
import psycopg
import pytest

from musterd import Client
from tests.fix_postgres import FreshDatabase
from tests.support.command import Daemon, Done, Home, eventually
from tests.support.http_client import ask
from tests.support.postgres_server import PostgresServer

MANY = 25
TWO = "[workers]\nmax_count = 6\n[tenants.acme]\n[tenants.globex]\n"


@pytest.fixture(params=["sqlite", "postgresql"])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Home:
    if request.param == "sqlite":
        return Home(tmp_path / "state")
    fresh: FreshDatabase = request.getfixturevalue("fresh_database")
    return Home(tmp_path / "state", fresh())


@attrs.frozen
class Site:
    """A home whose daemon and verbs read one configuration file."""

    home: Home
    file: Path

    @property
    def options(self) -> tuple[str, str]:
        return ("--config", str(self.file))

    def call(self, *arguments: str) -> Done:
        return self.home.call(*self.options, *arguments)

    def daemon(self) -> AbstractContextManager[Daemon]:
        return self.home.daemon(*self.options)

    def reload(self, daemon: Daemon, text: str, pattern: str) -> None:
        """Gives the daemon another configuration, and waits until it has told so."""
        self.file.write_text(text)
        daemon.send(signal.SIGHUP)
        daemon.wait_for_line(pattern)


@pytest.fixture
def site(home: Home, tmp_path: Path) -> Site:
    file = tmp_path / "musterd.toml"
    file.write_text(TWO)
    return Site(home, file)


def test_every_verb_takes_a_tenant_and_keeps_to_it(site: Site) -> None:
    with site.daemon() as daemon:
        daemon.wait_until_ready()
        daemon.wait_for_line("tenant ready.*tenant=acme")
        made = site.call("enqueue", "report", "--tenant", "acme", "--wait", "--json")
        assert (made.code, made.json["tenant"], made.json["state"]) == (0, "acme", "succeeded")
        assert site.call("--tenant=globex", "enqueue", "noop", "--count", "3", "--wait").code == 0
        assert len(site.call("jobs", "--json", "--tenant", "globex").lines) == 3
        assert len(site.call("jobs", "--json", "--tenant", "acme").lines) == 1
        assert site.call("jobs", "--json").out == ""
        assert site.call("job", "1", "--json", "--tenant", "acme").json["kind"] == "report"
        assert site.call("job", "1").code == 3
        assert site.call("queue", "pause", "--tenant", "acme").code == 0
        assert site.call("db", "status", "--tenant", "acme").code == 0
        metrics = ask(daemon.address, "/metrics").text
        ended = 'musterd_jobs_finished_total{kind="noop",outcome="succeeded",tenant="globex"} 3.0'
        assert ended in metrics
        assert 'musterd_jobs_enqueued_total{tenant="acme"} 1.0' in metrics


def test_an_unknown_tenant_is_exit_three_with_a_guess(site: Site) -> None:
    found = site.call("jobs", "--tenant", "acne")
    assert (found.code, found.out) == (3, "")
    assert "there is no tenant 'acne'\n  did you mean acme?" in found.err
    assert site.call("run", "--tenant", "acme").code == 2


def test_status_shows_all_tenants_or_the_one_that_is_named(site: Site) -> None:
    with site.daemon() as daemon:
        daemon.wait_until_ready()
        daemon.wait_for_line("tenant ready.*tenant=globex")
        site.call("enqueue", "noop", "--tenant", "acme", "--wait")
        reach = ("--set", daemon.listen)
        all_of_them = site.call("status", *reach)
        assert all_of_them.code == 0, all_of_them
        names = [line.split()[0] for line in all_of_them.out.splitlines()[-3:]]
        assert names == ["default", "acme", "globex"]
        whole = site.call("status", "--json", *reach).json
        done = {one["name"]: one["counts"]["jobs"]["succeeded"] for one in whole["tenants"]}
        assert done == {"default": 0, "acme": 1, "globex": 0}
        one = site.call("status", "--tenant", "acme", *reach)
        assert (one.code, "1 succeeded" in one.out) == (0, True)


def test_a_client_goes_by_the_same_names(site: Site, tmp_path: Path) -> None:
    url = site.home.store_url or f"sqlite:///{tmp_path / 'state' / 'musterd.db'}"
    with site.daemon() as daemon, Client(url, tenant="acme") as client:
        daemon.wait_until_ready()
        daemon.wait_for_line("tenant ready.*tenant=acme")
        found = client.wait(client.enqueue("noop"), timeout=20)
    assert (found["tenant"], found["state"]) == ("acme", "succeeded")
    assert len(site.call("jobs", "--tenant", "acme", "--json").lines) == 1


def test_a_reload_adds_and_removes_tenants_and_lets_running_jobs_end(site: Site) -> None:
    with site.daemon() as daemon:
        daemon.wait_until_ready()
        daemon.wait_for_line("tenant ready.*tenant=globex")
        site.call("enqueue", "slow", "--tenant", "globex")
        eventually(
            lambda: site.call("job", "1", "--json", "--tenant", "globex").json["state"] == "running"
        )
        more = TWO.replace("[tenants.globex]", "[tenants.initech]")
        site.reload(daemon, more, "tenant ready.*tenant=initech")
        assert site.call("enqueue", "noop", "--tenant", "initech", "--wait").code == 0
        daemon.wait_for_line('event="tenant left" tenant=globex')
        assert 'tenant="globex"' not in ask(daemon.address, "/metrics").text
        site.reload(daemon, TWO, "generation=3")
        assert site.call("job", "1", "--json", "--tenant", "globex").json["state"] == "succeeded"
        assert site.call("enqueue", "noop", "--tenant", "globex", "--wait").code == 0
        daemon.process.terminate()
        assert daemon.end() == 0


def test_a_reload_that_is_invalid_names_every_fault_and_changes_nothing(site: Site) -> None:
    with site.daemon() as daemon:
        daemon.wait_until_ready()
        bad = TWO.replace("= 6", '= "6"') + '[kind.x]\n[catalog]\npaths = ["no-such.toml"]\n'
        site.reload(daemon, bad, 'event="not reloaded" generation=1')
        faults = [line for line in daemon.log if "configuration fault" in line]
        assert len(faults) == 3
        metrics = ask(daemon.address, "/metrics").text
        assert "musterd_config_reload_success 0.0" in metrics
        assert "musterd_config_generation 1.0" in metrics
        site.file.write_text(TWO)
        assert site.call("enqueue", "noop", "--tenant", "acme", "--wait").code == 0


def test_a_reload_applies_what_it_can_and_says_what_needs_a_restart(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "kinds.toml").write_text("[kinds.fresh]\nduration_ms = 1\n")
    with site.daemon() as daemon:
        daemon.wait_until_ready()
        text = TWO.replace("= 6", "= 9\nlease_timeout_seconds = 40")
        text += '[tenants.acme.workers]\ndefault_count = 4\n[catalog]\npaths = ["kinds.toml"]\n'
        site.reload(daemon, text, "event=reloaded")
        daemon.wait_for_line('"needs a restart" key=workers.lease_timeout_seconds')
        idle = 'musterd_workers{state="idle",tenant="acme"} 4.0'
        eventually(lambda: idle in ask(daemon.address, "/metrics").text)
        assert "musterd_workers_max 9.0" in ask(daemon.address, "/metrics").text
        assert site.call("enqueue", "fresh", "--wait").code == 0


@pytest.fixture
def narrow() -> Generator[PostgresServer]:
    """A server that lets in few."""
    with PostgresServer(max_connections="30") as server:
        yield server


def test_many_tenants_share_few_connections(narrow: PostgresServer, tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(MANY)]
    tables = "".join(f"[tenants.{name}]\n" for name in names)
    file = tmp_path / "musterd.toml"
    file.write_text(f"[workers]\nmax_count = 60\n{tables}")
    site = Site(Home(tmp_path / "state", narrow.create_database("many")), file)
    with site.daemon() as daemon:
        daemon.wait_until_ready()
        for name in names:
            daemon.wait_for_line(f"tenant ready.*tenant={name}$")
        with psycopg.connect(site.home.store_url, autocommit=True) as conn:
            for name in names:
                conn.execute(f"insert into musterd_{name}.jobs (kind) values ('noop')".encode())
            left = "union all ".join(
                f"select state from musterd_{name}.jobs where state <> 'succeeded' "
                for name in names
            )
            eventually(lambda: conn.execute(left.encode()).fetchall() == [])
        assert len(narrow.sessions("many")) <= 12
        assert not [line for line in daemon.log if "level=warning" in line]
