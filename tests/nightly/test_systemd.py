"""The shipped units on real systemd machines: the oldest that is served, and a newer one."""

from __future__ import annotations

import json
from collections.abc import Generator

import pytest

from tests.support.command import eventually
from tests.support.machine import ROOT, Machine, missing, one_of_its_own
from tests.support.machine_kinds import HANDLERS, KINDS

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not here: {', '.join(missing())}")

MUSTERD = "/opt/musterd/bin/musterd"
SECRET = "musterd-s3cr3t"
OLD_SYSTEMD = 252
DROP_IN = "/etc/systemd/system/musterd.service.d/test.conf"

SETTINGS = '[catalog]\npaths = ["kinds.toml"]\n'


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Machine]:
    with one_of_its_own(request.param, tmp_path_factory.mktemp("machines")) as one:
        yield one


@pytest.fixture
def fresh(machine: Machine) -> Generator[Machine]:
    """The machine, with nothing configured but kinds, and musterd down."""
    machine.write("/etc/musterd/musterd.toml", SETTINGS)
    machine.write("/etc/musterd/kinds.toml", KINDS)
    machine.write("/etc/musterd/inside.py", HANDLERS)
    machine.do("systemctl", "daemon-reload")
    yield machine
    for unit in ("musterd", "musterd@a", "musterd@b"):
        machine.call("systemctl", "kill", "--signal=KILL", unit)
        machine.call("systemctl", "stop", unit)
        machine.call("systemctl", "reset-failed", unit)
    for path in ("/etc/systemd/system/musterd.service.d", "/etc/credstore", "/var/lib/private"):
        machine.remove(path)
    machine.do("systemctl", "daemon-reload")


def systemd_version(machine: Machine) -> int:
    return int(machine.do("systemctl", "--version").split()[1])


def verb(machine: Machine, *arguments: str, state: str = "musterd") -> str:
    """A verb as root types it."""
    return machine.do("env", f"STATE_DIRECTORY=/var/lib/{state}", MUSTERD, *arguments)


def run_job(machine: Machine, kind: str, *options: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        verb(machine, "enqueue", kind, "--wait", "--json", *options)
    )
    return found


def start(machine: Machine, unit: str = "musterd") -> None:
    machine.do("systemctl", "start", unit)
    assert machine.show(unit, "ActiveState") == "active"


def messages(machine: Machine, unit: str = "musterd") -> str:
    return "\n".join(str(entry["MESSAGE"]) for entry in machine.journal(unit))


def test_it_runs_under_the_hardened_unit_as_a_user_of_its_own(fresh: Machine) -> None:
    start(fresh)
    eventually(lambda: fresh.show("musterd", "StatusText") == "2/8 workers, 0 due")
    assert fresh.show("musterd", "NRestarts") == "0"
    owner = fresh.do("stat", "--format=%U", "/var/lib/private/musterd/musterd.db").strip()
    assert owner in ("musterd", "nobody")  # nobody: where only the service sees its own user there
    found = run_job(fresh, "surroundings")
    result = found["result"]
    assert isinstance(result, dict)
    assert result["user"] > 1_000
    assert (result["new_privileges"], result["notify"], result["writable"]) == (True, False, False)
    assert found["state"] == "succeeded"
    assert run_job(fresh, "program", "--payload", '"x"')["result"] == '64\n"x"'
    assert run_job(fresh, "report")["state"] == "succeeded"
    assert verb(fresh, "status").startswith("healthy")


def test_the_units_are_without_fault_and_closed(fresh: Machine) -> None:
    for unit in ("musterd.service", "musterd@a.service"):
        done = fresh.call("systemd-analyze", "verify", "--man=no", unit)
        assert (done.code, done.err) == (0, "")
        fresh.do("systemd-analyze", "security", "--offline=true", "--threshold=12", unit)


def test_a_reload_is_waited_for_and_a_broken_one_fails(fresh: Machine) -> None:
    start(fresh)
    fresh.write("/etc/musterd/musterd.toml", f"{SETTINGS}[workers]\nmax_count = 5\n")
    fresh.do("systemctl", "reload", "musterd")
    assert "event=reloaded generation=2" in messages(fresh)
    eventually(lambda: fresh.show("musterd", "StatusText").startswith("2/5 workers"))
    fresh.write("/etc/musterd/musterd.toml", "[workers]\nmax_count = 0\n")
    assert fresh.call("systemctl", "reload", "musterd").code != 0
    assert fresh.show("musterd", "ActiveState") == "active"
    assert "the last reload was refused" in fresh.show("musterd", "StatusText")
    assert fresh.show("musterd", "NRestarts") == "0"


def test_notify_reload_waits_without_http(fresh: Machine) -> None:
    if systemd_version(fresh) <= OLD_SYSTEMD:
        pytest.skip("this systemd does not know notify-reload")
    shipped = ROOT / "deploy" / "systemd" / "drop-ins"
    fresh.write(DROP_IN, (shipped / "notify-reload.conf").read_text())
    fresh.write("/etc/musterd/musterd.toml", f'{SETTINGS}[http]\nlisten = ""\n')
    fresh.do("systemctl", "daemon-reload")
    start(fresh)
    for generation in (2, 3):
        fresh.do("systemctl", "reload", "musterd")
        assert f"event=reloaded generation={generation}" in messages(fresh)
    assert fresh.show("musterd", "ActiveState") == "active"


def test_one_that_stands_still_is_started_anew(fresh: Machine) -> None:
    fresh.write(DROP_IN, "[Service]\nWatchdogSec=3\n")
    fresh.do("systemctl", "daemon-reload")
    start(fresh)
    fresh.do("systemctl", "kill", "--kill-whom=main", "--signal=STOP", "musterd")
    eventually(lambda: fresh.show("musterd", "NRestarts") == "1")
    eventually(lambda: fresh.show("musterd", "ActiveState") == "active")
    assert "Watchdog timeout" in messages(fresh)
    assert run_job(fresh, "report")["state"] == "succeeded"


def test_a_handler_that_blocks_the_loop_is_named_in_the_journal(fresh: Machine) -> None:
    fresh.write(DROP_IN, "[Service]\nWatchdogSec=3\n")
    fresh.do("systemctl", "daemon-reload")
    start(fresh)
    verb(fresh, "enqueue", "blocks")
    eventually(lambda: fresh.show("musterd", "NRestarts") == "1")
    assert "Watchdog timeout" in messages(fresh)
    assert "inside.py" in messages(fresh)
    assert "in blocks" in messages(fresh)


def test_a_wrong_configuration_stays_down(fresh: Machine) -> None:
    fresh.write("/etc/musterd/musterd.toml", "[workers]\nmax_count = 0\n")
    assert fresh.call("systemctl", "start", "musterd").code != 0
    assert fresh.show("musterd", "ExecMainStatus") == "78"
    assert fresh.show("musterd", "ActiveState") == "failed"
    assert fresh.show("musterd", "NRestarts") == "0"
    assert "workers.max_count" in messages(fresh)


def lets_a_running_job_finish(fresh: Machine) -> None:
    start(fresh)
    verb(fresh, "enqueue", "lasts")
    eventually(lambda: '"running"' in verb(fresh, "job", "1", "--json"))
    fresh.do("systemctl", "stop", "musterd")
    assert fresh.show("musterd", "Result") == "success"
    assert json.loads(verb(fresh, "job", "1", "--json"))["state"] == "succeeded"


def test_a_stop_lets_running_jobs_finish(fresh: Machine) -> None:
    lets_a_running_job_finish(fresh)
    log = messages(fresh)
    assert log.index("event=draining") < log.rindex("event=stopped")


def test_more_time_than_the_unit_gives_is_asked_for(fresh: Machine) -> None:
    fresh.write(DROP_IN, "[Service]\nTimeoutStartSec=15\nTimeoutStopSec=4\n")
    fresh.do("systemctl", "daemon-reload")
    away = '[store]\nurl = "postgresql://x@127.0.0.1:1/x"\n'
    fresh.write("/etc/musterd/musterd.toml", SETTINGS + away)
    fresh.do("systemctl", "start", "--no-block", "musterd")
    eventually(lambda: "waiting for the store" in fresh.show("musterd", "StatusText"))
    fresh.do("sleep", "20")
    assert fresh.show("musterd", "ActiveState") == "activating"
    assert fresh.show("musterd", "NRestarts") == "0"
    fresh.do("systemctl", "stop", "musterd")
    fresh.write("/etc/musterd/musterd.toml", SETTINGS)
    lets_a_running_job_finish(fresh)


def test_lines_of_the_journal_are_events_with_their_priority(fresh: Machine) -> None:
    start(fresh)
    fresh.do("systemctl", "kill", "--kill-whom=main", "--signal=HUP", "musterd")
    eventually(lambda: "event=reloaded" in messages(fresh))
    fresh.write("/etc/musterd/musterd.toml", "[workers]\nmax_count = 0\n")
    fresh.do("systemctl", "kill", "--kill-whom=main", "--signal=HUP", "musterd")
    eventually(lambda: 'event="not reloaded"' in messages(fresh))
    own = [one for one in fresh.journal("musterd") if one.get("_COMM") == "musterd"]
    events = [one for one in own if str(one["MESSAGE"]).startswith("ts=")]
    assert {one["PRIORITY"] for one in events if "level=info" in one["MESSAGE"]} == {"6"}
    assert {one["PRIORITY"] for one in events if "level=error" in one["MESSAGE"]} == {"3"}


def test_instances_stand_beside_each_other(fresh: Machine) -> None:
    for name, port in (("a", 9501), ("b", 9502)):
        listen = f'[http]\nlisten = "127.0.0.1:{port}"\n'
        fresh.write(f"/etc/musterd/{name}.toml", SETTINGS + listen)
        start(fresh, f"musterd@{name}")
    for name in ("a", "b"):
        verb(fresh, "enqueue", "report", "--wait", state=f"musterd-{name}")
        assert (fresh.tree / f"var/lib/private/musterd-{name}/musterd.db").exists()
    fresh.do("systemctl", "stop", "musterd@a")
    assert fresh.show("musterd@b", "ActiveState") == "active"


def test_the_address_of_the_store_comes_as_a_credential_and_is_told_to_nobody(
    fresh: Machine,
) -> None:
    url = f"postgresql://jobs:{SECRET}@127.0.0.1:1/jobs\n"
    fresh.write("/etc/credstore/musterd.store-url", url, 0o600)
    fresh.write("/etc/credstore/musterd.http-token", f"{SECRET}-token\n", 0o600)
    settings = (
        '[store]\nurl_file = "musterd.store-url"\n[http]\ntoken_file = "musterd.http-token"\n'
    )
    fresh.write("/etc/musterd/musterd.toml", SETTINGS + settings)
    fresh.do("systemctl", "start", "--no-block", "musterd")
    eventually(lambda: "waiting for the store" in fresh.show("musterd", "StatusText"))
    assert fresh.show("musterd", "ActiveState") == "activating"
    assert "127.0.0.1" in messages(fresh)
    fresh.do("systemctl", "stop", "musterd")
    assert SECRET not in fresh.do("journalctl", "--all", "--no-pager", "--output", "json")


def test_a_store_of_a_credential_is_used_and_a_token_serves_the_reload(fresh: Machine) -> None:
    url = "sqlite:////var/lib/musterd/elsewhere.db\n"
    fresh.write("/etc/credstore/musterd.store-url", url, 0o600)
    fresh.write("/etc/credstore/musterd.http-token", f"{SECRET}-token\n", 0o600)
    settings = (
        '[store]\nurl_file = "musterd.store-url"\n[http]\ntoken_file = "musterd.http-token"\n'
    )
    fresh.write("/etc/musterd/musterd.toml", SETTINGS + settings)
    start(fresh)
    assert (fresh.tree / "var/lib/private/musterd/elsewhere.db").exists()
    fresh.do("systemctl", "reload", "musterd")
    assert "event=reloaded" in messages(fresh)


def test_an_upgrade_leaves_the_running_daemon_and_the_settings_alone(fresh: Machine) -> None:
    start(fresh)
    before = fresh.show("musterd", "MainPID")
    there = (fresh.tree / "opt/musterd/bin").readlink()
    pip = ("PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels")
    fresh.do("env", *pip, "/src/deploy/install.sh")
    assert (fresh.tree / "opt/musterd/bin").readlink() != there
    assert (fresh.tree / "etc/musterd/musterd.toml").read_text() == SETTINGS
    assert fresh.show("musterd", "MainPID") == before
    assert run_job(fresh, "surroundings")["state"] == "succeeded"
    fresh.do("systemctl", "restart", "musterd")
    assert fresh.show("musterd", "MainPID") != before
    assert run_job(fresh, "surroundings")["state"] == "succeeded"
