"""Asking why, from the command line, on the embedded store."""

import signal

from tests.support.command import Home, eventually


def test_why_and_nodes_before_during_and_after(home: Home) -> None:
    home.call("enqueue", "sleep")
    asked = home.call("why", "1")
    assert (asked.code, asked.err) == (0, "")
    assert asked.out == (
        "job 1 · sleep · queued\n  no node is alive\n  do: start a node: `musterd run`\n"
    )
    assert home.call("nodes").out == "no node is alive: start one with `musterd run`\n"
    assert home.call("nodes", "--json").lines == []
    whole = home.call("--json", "why", "1").json
    assert [reason["code"] for reason in whole["reasons"]] == ["no_live_node"]
    assert (whole["id"], whole["state"], whole["position"]) == (1, "queued", 1)
    with home.daemon() as daemon:
        eventually(lambda: home.job(1)["state"] == "succeeded")
        eventually(lambda: bool(home.call("nodes", "--json").lines))
        (node,) = home.call("nodes", "--json").lines
        assert (node["live"], node["phase"], node["default_count"]) == (True, "running", 2)
        assert "sleep" in node["kinds"]
        assert " running " in home.call("nodes").out
        assert "it has ended: succeeded" in home.call("why", "1").out
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    assert home.call("nodes", "--json").lines == []


def test_of_what_is_not_there(home: Home) -> None:
    missing = home.call("why", "7", "--json")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err == "musterd: there is no job 7\n  `musterd jobs` lists them\n"
    assert home.call("why").code == 2
    assert home.call("why", "0").code == 2
