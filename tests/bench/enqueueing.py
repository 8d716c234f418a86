"""How fast one program fills the queue through the client."""

from __future__ import annotations

import time

from musterd import Client
from tests.bench.postgres import prepared
from tests.support.postgres_server import PostgresServer

BATCH = 10_000


def fill(server: PostgresServer, jobs: int) -> float:
    """Jobs a second, in batches, each with a small payload."""
    dsn = prepared(server, "fill", 0)
    with Client(dsn) as client:
        client.enqueue("noop")
        started = time.perf_counter()
        for first in range(0, jobs, BATCH):
            client.enqueue_many([("noop", {"i": first + number}) for number in range(BATCH)])
        seconds = time.perf_counter() - started
    server.drop_database("fill")
    return jobs / seconds
