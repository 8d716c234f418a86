"""The journal of decisions as people read it: from the daemon, and from the store without one."""

import json
import signal
import time

from tests.support.command import Daemon, Home, eventually
from tests.support.http_client import ask


def work(home: Home, daemon: Daemon) -> None:
    """Enough for the crew to grow."""
    daemon.wait_until_ready()
    home.call("enqueue", "report", "--count", "40", "--wait")
    eventually(lambda: any(one["hired"] for one in decisions(daemon)))


def stop(daemon: Daemon) -> None:
    daemon.send(signal.SIGTERM)
    assert daemon.end() == 0


def decisions(daemon: Daemon) -> list[dict[str, object]]:
    found: list[dict[str, object]] = ask(daemon.address, "/scaling").json["decisions"]
    return found


def test_a_restart_keeps_the_journal(machine: Home) -> None:
    with machine.daemon() as daemon:
        work(machine, daemon)
        told = machine.call("scaling", "--limit", "500", "--json", "--set", daemon.listen).lines
        stop(daemon)
    kept = machine.call("scaling", "--limit", "500", "--json").lines
    assert any(one["hired"] for one in kept)
    assert [one["at"] for one in kept[: len(told)]] == [one["at"] for one in told]
    assert kept[: len(told) - 1] == told[:-1]  # the last may have grown
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        eventually(lambda: len({one["node"] for one in decisions(daemon)}) == 2)
        both = machine.call("scaling", "--limit", "500", "--json", "--set", daemon.listen).lines
        assert both[: len(kept)] == kept
        shown = machine.call("scaling", "--limit", "500", "--set", daemon.listen)
        assert "node" in shown.out.splitlines()[0]


def test_a_stretch_of_it(home: Home) -> None:
    with home.daemon() as daemon:
        work(home, daemon)
        stop(daemon)
    every = home.call("scaling", "--limit", "500", "--json").lines
    middle = every[len(every) // 2]["at"]
    early = home.call("scaling", "--until", middle, "--limit", "500", "--json").lines
    late = home.call("scaling", "--since", middle, "--limit", "500", "--json").lines
    assert early == [one for one in every if one["at"] <= middle]
    assert late == [one for one in every if one["until"] >= middle]
    assert home.call("scaling", "--since", "-1h", "--limit", "500", "--json").lines == every
    nothing = home.call("scaling", "--until", "-1h")
    assert (nothing.code, nothing.out.strip()) == (0, "no decision has been made then")
    wrong = home.call("scaling", "--since", "yesterday")
    assert (wrong.code, "write 03:12, -2h or" in wrong.err) == (2, True)


def test_a_daemon_on_another_store_is_not_asked(home: Home, server_home: Home) -> None:
    with home.daemon() as daemon:
        work(home, daemon)
        server_home.call("db", "migrate")
        other = server_home.call("scaling", "--json", "--set", daemon.listen)
    assert (other.code, other.lines) == (0, [])


def test_a_daemon_that_is_killed_has_left_its_decisions(home: Home) -> None:
    with home.daemon() as daemon:
        work(home, daemon)
        time.sleep(6)
        daemon.send(signal.SIGKILL)
        daemon.end()
    kept = home.call("scaling", "--limit", "500", "--json").lines
    assert any(one["hired"] for one in kept), json.dumps(kept)
