"""Who is refused by a real daemon, how soon, and what its audit log says of who did what."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.command import Daemon, Home, eventually
from tests.support.http_client import Answer, ask

ADMIN, SHOP, WRONG = "a" * 20, "s" * 20, "w" * 20
AT_ONCE = 10  # refusals that docs/http-api.md promises to tell at once
LINES_MAX = 20  # of refusals in ten seconds


@pytest.fixture
def daemon(home: Home, tmp_path: Path) -> Generator[Daemon]:
    """It logs errors alone, and has two tokens."""
    (tmp_path / "ops").write_text(ADMIN)
    (tmp_path / "shop").write_text(SHOP)
    tokens = [
        {"name": "ops", "token_file": str(tmp_path / "ops"), "scopes": ["admin"]},
        {"name": "shop", "token_file": str(tmp_path / "shop"), "scopes": ["enqueue", "read"]},
    ]
    tables = ", ".join(
        "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in token.items()) + "}"
        for token in tokens
    )
    with home.daemon("--set", f"http.tokens=[{tables}]") as running:
        running.wait_until_ready()
        yield running


def as_holder(
    daemon: Daemon, token: str, path: str, method: str = "GET", body: object = None
) -> Answer:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    raw = None if body is None else json.dumps(body).encode()
    return ask(daemon.address, path, headers, method=method, body=raw)


def audited(daemon: Daemon) -> list[str]:
    return [line for line in daemon.log if "logger=musterd.audit" in line]


def test_whoever_changes_something_is_written_down(daemon: Daemon) -> None:
    made = as_holder(daemon, SHOP, "/jobs", "POST", {"kind": "noop", "delay_seconds": 3600})
    job = made.json["id"]
    assert as_holder(daemon, ADMIN, f"/jobs/{job}/pause", "POST").status == 200
    assert as_holder(daemon, ADMIN, "/queue/pause", "POST").status == 200
    assert as_holder(daemon, SHOP, f"/jobs/{job}/cancel", "POST").status == 403
    assert as_holder(daemon, ADMIN, f"/jobs/{job}").status == 200
    eventually(lambda: len(audited(daemon)) >= 3)
    lines = audited(daemon)
    done = [line for line in lines if "event=action" in line]
    assert [line.count("who=ops") for line in done] == [1, 1]
    assert f"path=/jobs/{job}/pause status=200" in done[0]
    assert "path=/queue/pause status=200" in done[1]
    assert all("peer=127.0.0.1" in line and "method=POST" in line for line in done)
    (refused,) = [line for line in lines if "event=refused" in line]
    assert "who=shop" in refused
    assert "status=403" in refused
    assert not any(secret in line for secret in (ADMIN, SHOP) for line in daemon.log)


def seconds_of(daemon: Daemon, token: str) -> tuple[int, float]:
    began = time.monotonic()
    status = as_holder(daemon, token, "/status").status
    return status, time.monotonic() - began


def test_who_guesses_waits_and_who_has_a_token_does_not(daemon: Daemon) -> None:
    """From the same address."""
    assert as_holder(daemon, SHOP, "/status").status == 200  # what is loaded first takes its time
    for _ in range(AT_ONCE):
        assert as_holder(daemon, WRONG, "/status").status == 401
    took = [seconds_of(daemon, WRONG) for _ in range(3)]
    assert [status for status, _ in took] == [401] * 3
    assert all(seconds >= 0.9 for _, seconds in took)
    status, seconds = seconds_of(daemon, SHOP)
    assert (status, seconds < 0.9) == (200, True)
    assert ask(daemon.address, "/livez").status == 200


def test_a_flood_of_guesses_is_counted_and_does_not_fill_the_log(daemon: Daemon) -> None:
    host, _, port = daemon.address.removeprefix("http://").partition(":")
    said = f"GET /status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRONG}\r\n\r\n"
    guessing: list[socket.socket] = []
    for _ in range(3 * LINES_MAX):
        one = socket.create_connection((host, int(port)), timeout=10)
        one.sendall(said.encode())
        guessing.append(one)
    for one in guessing:
        with one:
            assert one.recv(12) in (b"HTTP/1.1 401", b"")  # silent ones make room
    refused = [line for line in audited(daemon) if "event=refused" in line]
    assert AT_ONCE <= len(refused) <= LINES_MAX + 1
    assert WRONG not in "".join(daemon.log)
