"""Readers of events that stop reading: what the daemon keeps for them is bounded, for each and for
all of them together.
"""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.command import Daemon, Home, eventually

READERS = 500
JOBS = 60_000
GROWN_MIB_MAX = 200.0


def mib(daemon: Daemon, what: str) -> float:
    text = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.findall(rf"{what}:\s+(\d+) kB", text)[0]) / 1024


def silent_reader(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect((host, int(port)))
    reader.sendall(f"GET /events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


@pytest.mark.timeout(300)
def test_readers_that_stop_reading_cost_little(home: Home) -> None:
    with home.daemon() as daemon, ExitStack() as readers:
        daemon.wait_until_ready()
        before = mib(daemon, "VmRSS")
        for _ in range(READERS):
            readers.enter_context(silent_reader(daemon.address))
        assert home.call("enqueue", "noop", "--count", str(JOBS)).code == 0

        def all_done() -> bool:
            return int(home.call("status", "--json").json["counts"]["jobs"]["succeeded"]) == JOBS

        eventually(all_done, seconds=200)
        grown = mib(daemon, "VmHWM") - before
    assert grown < GROWN_MIB_MAX, f"{grown:.0f} MiB more for {READERS} readers"
