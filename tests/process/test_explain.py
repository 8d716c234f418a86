"""`musterd explain` as people use it: with a daemon and without, by all ways to write a time."""

import signal
from typing import Any

from tests.support.command import Home, eventually
from tests.support.http_client import ask

NARROW = ("--set", "workers.max_count=3")


def busy_night(home: Home) -> dict[str, Any]:
    """The decision that hired as many as it might, for a queue that wanted more."""
    with home.daemon(*NARROW) as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "report", "--count", "60")

        def hired() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = ask(daemon.address, "/scaling").json["decisions"]
            return [one for one in rows if one["hired"]]

        eventually(lambda: bool(hired()))
        (first, *_) = hired()
        told = home.call("explain", "--at", first["at"], "--set", daemon.listen)
        assert told.code == 0, told
        assert "Limited by `max`: max_count was 3, and it may have no more." in told.out
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    return first


def test_a_decision_of_the_past(machine: Home) -> None:
    first = busy_night(machine)
    clock = first["at"][11:]
    for at in (first["at"], clock):
        told = machine.call("explain", "--at", at, "--with", "workers.max_count=64")
        assert told.code == 0, told
        lines = told.out.splitlines()
        assert lines[0].startswith(f"{first['node']} at {first['at'][:23]}")
        wish = f"  `demand` wished for {first['raw_wish']} workers, one for each due job"
        assert lines[2].startswith(wish)
        assert lines[3] == "  Limited by `max`: max_count was 3, and it may have no more."
        assert lines[4].startswith("  Done: hired ")
        assert lines[5] == (
            f"  With workers.max_count=64 it would have made it {first['raw_wish']}, having wished"
            f" for {first['raw_wish']}: instead of 3."
        )
    (whole,) = machine.call("explain", "--at", clock, "--json").lines
    assert (whole["decision"]["at"], whole["decision"]["desired"]) == (first["at"], 3)
    assert "with" not in whole
    latest = machine.call("explain", "--json").lines[0]
    assert latest["decision"]["at"] >= first["at"]
    (anew,) = machine.call(
        "explain", "--at", clock, "--json", "--with", "scaling.policy=latency"
    ).lines
    assert anew["with"]["plan"] is None
    assert anew["with"]["not_held"][0].startswith("the line of jobs")


def test_exit_codes(home: Home) -> None:
    nothing = home.call("explain")
    assert (nothing.code, "no decision is kept" in nothing.err) == (3, True)
    busy_night(home)
    for code, said, *arguments in (
        (3, "or before is kept", "--at", "-1h"),
        (3, "or before is kept", "--at", "0001-01-01T00:00:00Z"),
        (2, "is no time: write 03:12, -2h", "--at", "yesterday"),
        (2, "no decision depends on it", "--with", "store.url=x"),
        (78, "wanted default_count <= max_count", "--with", "workers.max_count=1"),
        (78, "workers.max_coun", "--with", "workers.max_coun=9"),
        (3, "there is no tenant", "--tenant", "nobody"),
        (69, "127.0.0.1", "--set", "store.url=postgresql://x@127.0.0.1:1/x"),
    ):
        done = home.call("explain", *arguments)
        assert (done.code, said in done.err) == (code, True), done
        assert "Traceback" not in done.err
