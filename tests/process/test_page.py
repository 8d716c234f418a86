"""The page over both stores of a real daemon, and when the store is gone."""

from __future__ import annotations

import time

from tests.support.command import Home, eventually
from tests.support.http_client import Answer, ask
from tests.support.postgres_server import PostgresServer

VIEWS = ("/", "/ui/jobs", "/ui/jobs/1", "/ui/nodes", "/ui/scaling")
HTML = {"Accept": "text/html"}
SAID = "the store does not answer"


def timed(address: str, path: str) -> tuple[Answer, float]:
    start = time.monotonic()
    return ask(address, path, HTML), time.monotonic() - start


def test_every_view_over_either_store(machine: Home) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        made = machine.call("enqueue", "video", "--wait", "--set", daemon.listen)
        assert made.code == 0, made.err
        for path in VIEWS:
            answer, _ = timed(daemon.address, path)
            assert (answer.status, SAID in answer.text) == (200, False), path
        assert "phase upload: succeeded" in ask(daemon.address, "/ui/jobs/1", HTML).text


def test_a_store_that_is_gone_keeps_no_page_waiting(
    server_home: Home, postgres: PostgresServer
) -> None:
    home = server_home
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        assert home.call("enqueue", "noop", "--wait").code == 0
        with postgres.down():
            for path in VIEWS[:-1]:
                # The best of a few: the machine has others to serve.
                tries = [timed(daemon.address, path) for _ in range(3)]
                assert min(seconds for _, seconds in tries) < 1.0, path
                assert all(SAID in answer.text for answer, _ in tries), path
        eventually(lambda: SAID not in ask(daemon.address, "/", HTML).text)
        assert ask(daemon.address, "/ui/jobs/1", HTML).status == 200
