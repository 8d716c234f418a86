"""What readers of a stream cost: how late the node's loop is with 500 of events, under load."""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import trio

from musterd.catalog.load import catalog_of
from musterd.config.load import load
from musterd.console.wiring import Node, http_deps, make_node
from musterd.store.jobs import NewJob
from tests.bench.running import ROOT
from tests.support.web_scene import serve

READERS = 500
JOBS_A_SECOND = 300
SECONDS = 10.0
PROBE_SECONDS = 0.005
ROUND_SECONDS = 0.1
EVENTS = "/events"


class Lag(NamedTuple):
    """How late the loop was, and what the readers got meanwhile."""

    p50_ms: float
    p99_ms: float
    most_ms: float
    events_a_second: float
    jobs_a_second: float


def lag(url: str, readers: int, jobs_a_second: int = JOBS_A_SECOND, path: str = EVENTS) -> Lag:
    """Of a node with so many readers, while so many no-op jobs are enqueued and run."""
    return trio.run(_lag, url, readers, jobs_a_second, path)


def lag_embedded(readers: int, jobs_a_second: int = JOBS_A_SECOND, path: str = EVENTS) -> Lag:
    with tempfile.TemporaryDirectory() as folder:
        return lag(f"sqlite:///{folder}/musterd.db", readers, jobs_a_second, path)


async def _lag(url: str, readers: int, jobs_a_second: int, path: str) -> Lag:
    sets = [f"store.url={url}", "http.listen=127.0.0.1:0", "log.level=error", "metrics.kinds_max=5"]
    settings = load(None, {}, sets, Path("no.such.file")).settings
    log = logging.getLogger("musterd.bench")
    log.setLevel(logging.ERROR)
    node = make_node(settings, catalog_of(settings, os.environ), log)
    late: list[float] = []
    async with trio.open_nursery() as nursery:
        address: str = await nursery.start(
            serve, http_deps(settings, node, log), settings.http.listen
        )
        await nursery.start(node.daemon.run)
        far = await _far_end(address, readers, path)
        async with trio.open_nursery() as working:
            working.start_soon(_work, node, jobs_a_second)
            await trio.sleep(2.0)
            before = node.daemon.status().settled_total
            with trio.move_on_after(SECONDS):
                await _probe(late)
            settled = node.daemon.status().settled_total - before
            working.cancel_scope.cancel()
        heard = await trio.to_thread.run_sync(_end, far)
        node.daemon.stop()
        while node.daemon.status().phase != "stopped":  # noqa: ASYNC110 - its end rings no bell
            await trio.sleep(PROBE_SECONDS)
        nursery.cancel_scope.cancel()
    late.sort()
    p50, p99 = (late[int(len(late) * share)] * 1000 for share in (0.5, 0.99))
    return Lag(p50, p99, late[-1] * 1000, heard, settled / SECONDS)


async def _probe(late: list[float]) -> None:
    while True:
        wanted = time.perf_counter() + PROBE_SECONDS
        await trio.sleep(PROBE_SECONDS)
        late.append(time.perf_counter() - wanted)


async def _work(node: Node, jobs_a_second: int) -> None:
    batch = [NewJob("noop")] * int(jobs_a_second * ROUND_SECONDS)
    while True:
        next_local = trio.current_time() + ROUND_SECONDS
        if batch:
            await node.engine.jobs.enqueue(batch)
        await trio.sleep_until(next_local)


async def _far_end(address: str, readers: int, path: str) -> subprocess.Popen[str]:
    """The readers, in a process of their own, all of them connected."""
    command = [sys.executable, "-m", "tests.bench.readers", address, str(readers), path]
    far = await trio.to_thread.run_sync(
        lambda: subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    )
    assert far.stdout is not None
    said = await trio.to_thread.run_sync(far.stdout.readline)
    assert said == "connected\n", said
    return far


def _end(far: subprocess.Popen[str]) -> float:
    """Ends the readers; gives how many events a second they got, all of them together."""
    far.send_signal(signal.SIGTERM)
    out, _ = far.communicate(timeout=30)
    return float(out)


def _read_all(address: str, readers: int, path: str) -> None:
    """Reads whatever comes, until TERM."""
    asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    host, _, port = address.removeprefix("http://").rpartition(":")
    selector = selectors.DefaultSelector()
    opened: list[socket.socket] = []
    for _ in range(readers):
        stream = socket.create_connection((host, int(port)))
        stream.sendall(asked)
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        stream.setblocking(False)
        selector.register(stream, selectors.EVENT_READ, stream)
        opened.append(stream)
    ended = False

    def end(_number: int, _frame: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    print("connected", flush=True)
    events, began = 0, time.monotonic()
    while not ended:
        for key, _ in selector.select(0.1):
            data: bytes = key.data.recv(1 << 20)
            assert data, "cut off"
            events += data.count(b"event: ")
    print(events / (time.monotonic() - began))


if __name__ == "__main__":
    _read_all(sys.argv[1], int(sys.argv[2]), sys.argv[3])
