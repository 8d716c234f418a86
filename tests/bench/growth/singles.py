"""Jobs that clients enqueue one by one, a transaction each, while two daemons drain them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs

from tests.bench.growth.draining import moment, workshop
from tests.bench.growth.figures import Figures, Row, Size, in_turns
from tests.bench.growth.queues import queue
from tests.bench.running import daemon, wait_until
from tests.support.postgres_server import PostgresServer

DAEMONS = 2
SECONDS = 10.0
WARM = 100  # jobs of each client
INSERT = "insert into musterd.jobs (kind, payload) values ('note', '{\"i\": 1}')"
POSITION = "select pg_current_wal_insert_lsn() - '0/0'"
COMMITTED = re.compile(r"actually processed: (\d+)")
RATE = re.compile(r"tps = ([0-9.]+)")


def rows(server: PostgresServer, rounds: int, scale: float) -> Iterator[Row]:
    seconds = max(3, round(SECONDS * scale))
    sizes = [
        Size(f"{number} client" + "s" * (number > 1), number, _measured(server, number, seconds))
        for number in (1, 4, 16)
    ]
    yield from in_turns("singles", sizes, rounds)


def _measured(server: PostgresServer, clients: int, seconds: int) -> Callable[[], Figures]:
    def measure() -> Figures:
        with queue(server, "singles") as ours, workshop() as shop, ExitStack() as stack:
            daemons = [
                stack.enter_context(daemon(ours.url, shop.sets(100))) for _ in range(DAEMONS)
            ]
            gate = ours.gate(DAEMONS)
            wait_until(gate.ready)
            warm, _ = _enqueue(server, ours.url, clients, f"-t{WARM}")
            wait_until(lambda: shop.done() >= warm)
            first, log = moment(shop, daemons, gate), ours.ask(POSITION)[0]
            jobs, rate = _enqueue(server, ours.url, clients, f"-T{seconds}")
            wait_until(lambda: shop.done() >= warm + jobs)
            found = first.until(moment(shop, daemons, gate), rate)
            wait_until(lambda: not any(ours.ask("select count(*) from {schema}.event_drafts")))
            written = ours.ask(POSITION)[0] - log
            return attrs.evolve(found, log_bytes=written / jobs)

    return measure


def _enqueue(server: PostgresServer, url: str, clients: int, until: str) -> tuple[int, float]:
    """How many jobs so many clients have committed by then, and how many a second."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        script = Path(folder) / "insert.sql"
        script.write_text(f"{INSERT};\n")
        command = [str(server.binaries / "pgbench"), "-n", "-M", "prepared", "-c", str(clients)]
        command += [until, "-f", str(script), url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    committed, rate = COMMITTED.search(said), RATE.search(said)
    assert committed is not None
    assert rate is not None
    return int(committed[1]), float(rate[1])
