"""What several nodes on one PostgreSQL do together, and what they cost with nothing to do.

`python -m tests.bench.nodes` runs this part alone; `quick` as in `make bench`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.bench.postgres import prepared, succeeded
from tests.bench.running import TICKS_A_SECOND, daemon, used, wait_until
from tests.bench.tenants import SAID, SETTLE_SECONDS
from tests.support.postgres_server import PostgresServer

DRAINERS = (1, 2, 4, 8)
IDLERS = (1, 5, 10)
CREW = ("workers.default_count=20", "workers.max_count=20")
SPAN = """
select extract(epoch from max(finished_at) - %s)::float8
from musterd.job_rows where state = 'succeeded'
"""


class Rest(NamedTuple):
    """Of all nodes together; of the server what its processes use beside them."""

    nodes: int
    statements_a_second: float
    core_percent: float
    server_core_percent: float


def drain(server: PostgresServer, nodes: int, rows: int) -> float:
    """Jobs a second of so many daemons, all of which are there before the first job is claimed."""
    dsn = prepared(server, "cluster", rows)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update musterd.queue_state set paused_at = clock_timestamp()")
        with _daemons(dsn, nodes, conn, CREW):
            began = _value(
                conn,
                "update musterd.queue_state set paused_at = null returning clock_timestamp()",
            )
            wait_until(lambda: succeeded(conn) >= rows)
        (seconds,) = conn.execute(SPAN.encode(), [began]).fetchone() or (0.0,)
    server.drop_database("cluster")
    return rows / float(seconds)


def idle(server: PostgresServer, nodes: int, seconds: float = 20.0) -> Rest:
    """What so many daemons use that have nothing to do."""
    dsn = prepared(server, "resting", 0)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("alter database resting set log_min_duration_statement = 0")
        with _daemons(dsn, nodes, conn) as process_ids:
            time.sleep(SETTLE_SECONDS)
            before = _taken(process_ids, server)
            time.sleep(seconds)
            after = _taken(process_ids, server)
    server.drop_database("resting")
    said, own, servers = ((new - old) / seconds for old, new in zip(before, after, strict=True))
    return Rest(nodes, said, own * 100, servers * 100)


def lines(server: PostgresServer, share: int) -> Generator[tuple[str, str]]:
    """What was measured, and how it came out."""
    rows = 20_000 // share
    alone = 0.0
    for nodes in DRAINERS:
        rate = drain(server, nodes, rows)
        alone = alone or rate
        beside = f"{rate:,.0f} jobs/s = {rate / alone:.2f} of one"
        yield f"drain of {rows:,} by {nodes} daemons of 20 workers", beside
    for nodes in IDLERS:
        rest = idle(server, nodes)
        beside = (
            f"{rest.statements_a_second:.1f} statements/s, {rest.core_percent:.2f} % of a core,"
            f" server {rest.server_core_percent:.2f} %; a daemon:"
            f" {rest.statements_a_second / nodes:.1f}/s, {rest.core_percent / nodes:.2f} %,"
            f" {rest.server_core_percent / nodes:.2f} %"
        )
        yield f"{nodes} idle daemons on one database", beside


@contextmanager
def _daemons(
    dsn: str, nodes: int, conn: psycopg.Connection[Any], sets: Sequence[str] = ()
) -> Generator[list[int]]:
    """Starts them, and waits until the store has seen them all."""
    with ExitStack() as stack:
        process_ids = [stack.enter_context(daemon(dsn, sets)) for _ in range(nodes)]
        wait_until(lambda: _value(conn, "select count(*) from musterd.nodes") >= nodes)
        yield process_ids


def _taken(process_ids: Sequence[int], server: PostgresServer) -> tuple[float, float, float]:
    """Statements, and processor seconds of the nodes and of the server, so far."""
    own = sum(used(one).cpu_seconds for one in process_ids)
    assert server.process_id is not None
    return len(SAID.findall(server.log)), own, _family_seconds(server.process_id)


def _family_seconds(process_id: int) -> float:
    """Processor time of a process, of its children, and of those that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended since; its parent has its time
        if stat.parent.name == str(process_id):
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == process_id:
            ticks += sum(map(int, fields[11:13]))
    return ticks / TICKS_A_SECOND


def _value(conn: psycopg.Connection[Any], statement: str) -> Any:
    row = conn.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def main(words: Sequence[str], say: Callable[[str], None] = print) -> None:
    with PostgresServer(durable=True) as server:
        for what, found in lines(server, 10 if "quick" in words else 1):
            say(f"{what:<52} {found}")


if __name__ == "__main__":
    main(sys.argv[1:])
