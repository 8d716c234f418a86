"""The HTTP side of a real daemon: jobs to their ends, tokens from files, a drain, no store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.command import Daemon, Home, eventually
from tests.support.http_client import Answer, ask
from tests.support.postgres_server import PostgresServer

JSON = {"Content-Type": "application/json"}


def post(
    daemon: Daemon, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> Answer:
    raw = None if body is None else json.dumps(body).encode()
    return ask(daemon.address, path, {**JSON, **(headers or {})}, method="POST", body=raw)


def state_of(daemon: Daemon, job_id: int) -> str:
    found: str = ask(daemon.address, f"/jobs/{job_id}").json["state"]
    return found


def test_a_job_lives_from_its_post_to_its_end(machine: Home) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        made = post(daemon, "/jobs", {"kind": "report", "payload": {"n": 1}, "dedup_key": "k"})
        assert (made.status, made.json["tenant"]) == (201, "default")
        again = post(daemon, "/jobs", {"kind": "report", "dedup_key": "k"})
        assert (again.status, again.json["id"]) == (200, made.json["id"])
        eventually(lambda: state_of(daemon, made.json["id"]) == "succeeded")
        told = machine.call("job", str(made.json["id"]), "--json").json
        assert ask(daemon.address, made.headers["location"]).json == told
        late = post(daemon, "/jobs", {"kind": "noop", "delay_seconds": 3600}).json["id"]
        assert post(daemon, f"/jobs/{late}/pause").json["state"] == "paused"
        assert post(daemon, f"/jobs/{late}/resume").status == 200
        eventually(lambda: state_of(daemon, late) == "succeeded")
        assert post(daemon, f"/jobs/{late}/cancel").status == 409
        listed = ask(daemon.address, "/jobs?state=succeeded&limit=1").json
        assert [job["id"] for job in listed["jobs"]] == [late]
        rest = ask(daemon.address, f"/jobs?state=succeeded&cursor={listed['next']}").json
        assert [job["id"] for job in rest["jobs"]] == [made.json["id"]]


def test_values_that_a_store_cannot_keep_are_refused_and_the_store_is_well(machine: Home) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        for body in (
            {"kind": "noop", "dedup_key": "a\0b"},
            {"kind": "noop", "dedup_key": "\ud800"},
        ):
            assert post(daemon, "/jobs", body).status == 422
        for query in ("kind=%00", "kind=%ED%A0%80", "tenant=%00"):
            assert ask(daemon.address, f"/jobs?{query}").status == 422
        far = {"kind": "noop", "run_at": "9999-12-31T23:59:59Z"}
        assert post(daemon, "/jobs", far).json["run_at"] == "9999-12-31T23:59:59.000000Z"
        past = {"kind": "noop", "run_at": "0001-01-01T00:00:00Z"}
        assert post(daemon, "/jobs", past).status in (201, 422)
        assert ask(daemon.address, "/jobs").status == 200
        assert ask(daemon.address, "/readyz").status == 200


def test_a_drain_over_http_ends_the_daemon(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        post(daemon, "/jobs", {"kind": "report"})
        eventually(lambda: state_of(daemon, 1) != "queued")
        answer = post(daemon, "/drain")
        assert (answer.status, answer.json["node"]["phase"]) == (202, "draining")
        assert daemon.end() == 0
    assert home.job(1)["state"] == "succeeded", "twice told or not, a drain waits for what runs"


def test_tokens_from_files_open_what_their_scopes_say(home: Home, tmp_path: Path) -> None:
    for name in ("ops", "shop", "board"):
        (tmp_path / f"{name}.token").write_text(f"token of {name}\n")
    (tmp_path / "musterd.toml").write_text(
        '[http]\ntoken_file = "ops.token"\n'
        '[[http.tokens]]\nname = "shop"\ntoken_file = "shop.token"\nscopes = ["enqueue"]\n'
        '[[http.tokens]]\nname = "board"\ntoken_file = "board.token"\nscopes = ["read"]\n'
    )
    config = ("--config", str(tmp_path / "musterd.toml"))
    ops, shop, board = (
        {"Authorization": f"Bearer token of {name}"} for name in ("ops", "shop", "board")
    )
    with home.daemon(*config) as daemon:
        daemon.wait_until_ready()
        job = {"kind": "noop"}
        assert [post(daemon, "/jobs", job, by).status for by in (shop, board, {})] == [
            201,
            403,
            401,
        ]
        assert [ask(daemon.address, "/jobs", by).status for by in (board, shop)] == [200, 403]
        assert [ask(daemon.address, "/metrics", by).status for by in (board, shop)] == [200, 403]
        assert [post(daemon, "/queue/pause", None, by).status for by in (board, ops)] == [403, 200]
        assert home.call("status", *config, "--set", daemon.listen).code == 0
        assert "token of" not in "\n".join(daemon.log)


def test_two_holders_of_one_token_keep_the_daemon_from_starting(home: Home, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("same")
    table = f'{{name = "a", token_file = "{tmp_path / "t"}", scopes = ["read"]}}'
    done = home.call("run", "--set", "http.token=same", "--set", f"http.tokens=[{table}]")
    assert (done.code, "the same token as that of admin" in done.err) == (78, True)
    assert "Traceback" not in done.err


def test_a_socket_of_the_file_system_serves_the_same(home: Home, tmp_path: Path) -> None:
    place = f"unix:{tmp_path / 'm.sock'}"
    with home.daemon("--set", f"http.listen={place}") as daemon:
        daemon.wait_until_ready()
        body = json.dumps({"kind": "noop"}).encode()
        assert ask(place, "/jobs", JSON, method="POST", body=body).status == 201
        assert ask(place, "/jobs/1").json["kind"] == "noop"


def test_a_store_that_is_gone_is_503_until_it_is_back(
    server_home: Home, postgres: PostgresServer
) -> None:
    with server_home.daemon() as daemon:
        daemon.wait_until_ready()
        assert post(daemon, "/jobs", {"kind": "noop"}).status == 201
        with postgres.down():
            for answer in (
                post(daemon, "/jobs", {"kind": "noop"}),
                ask(daemon.address, "/jobs"),
                ask(daemon.address, "/jobs/1"),
                post(daemon, "/jobs/1/cancel"),
                post(daemon, "/queue/pause"),
            ):
                assert (answer.status, answer.headers["retry-after"]) == (503, "1"), answer.text
            eventually(lambda: ask(daemon.address, "/readyz").status == 503)
            # Counts may be a second old.
            eventually(lambda: ask(daemon.address, "/status").json["counts"] is None)
        eventually(lambda: ask(daemon.address, "/jobs/1").status == 200)
        assert post(daemon, "/jobs", {"kind": "noop"}).status == 201
