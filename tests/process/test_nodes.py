"""Real daemons on one PostgreSQL: who is there, who died, what they do not agree on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from tests.fix_postgres import FreshDatabase
from tests.support.command import Home, eventually
from tests.support.http_client import ask

OLD = "update musterd.nodes set heartbeat_at = heartbeat_at - interval '1 minute' where id = %s"


def listed(home: Home) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.call("nodes", "--json").lines
    return found


def test_nodes_that_differ_are_told_of_and_a_dead_one_is_listed(
    tmp_path: Path, fresh_database: FreshDatabase
) -> None:
    home = Home(tmp_path / "state", fresh_database())
    with home.daemon() as one, home.daemon("--set", "events.keep_hours=1") as two:
        one.wait_until_ready()
        two.wait_until_ready()
        eventually(lambda: len(listed(home)) == 2)
        first, second = listed(home)
        assert first["id"] != second["id"]
        assert first["config_hash"] != second["config_hash"]
        assert (first["config_generation"], second["config_generation"]) == (1, 1)
        assert first["load"] >= 0

        seen = home.call("nodes", "--json")
        assert (seen.code, len(seen.lines)) == (0, 2)
        assert seen.err.startswith("warning: the nodes have different configurations: ")
        table = home.call("nodes")
        assert table.err == seen.err
        assert first["config_hash"] in table.out
        said = seen.err.removeprefix("warning: ").rstrip("\n")
        status = home.call("status", "--set", one.listen)
        assert (status.code, f"  WARNING {said}\n" in status.out) == (0, True)
        assert home.call("status", "--set", one.listen, "--json").json["warnings"] == [said]
        over_http = ask(two.address, "/nodes").json
        assert [node["id"] for node in over_http["nodes"]] == [first["id"], second["id"]]
        assert over_http["warnings"] == [said]
        assert isinstance(ask(two.address, "/duties").json["duties"], list)

        two.process.kill()
        two.process.wait()
        (dead,) = (
            node for node in listed(home) if node["node"].split("-")[-2] == str(two.process.pid)
        )
        with psycopg.connect(home.store_url, autocommit=True) as conn:
            conn.execute(OLD, (dead["id"],))
        after = home.call("nodes")
        assert (" dead " in after.out, after.err) == (True, "")
        assert [node["live"] for node in listed(home)].count(True) == 1
