"""Peers that hold connections to a real daemon and say little: others are served all the same, and
what could be read in two ways is read in none.
"""

from __future__ import annotations

import socket
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.command import Daemon, Home
from tests.support.http_client import ask

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
HELD = 300  # connections: more than there are places
HOST = b"Host: localhost\r\n"
SLOW_BODY = b"POST /jobs HTTP/1.1\r\n" + HOST + (
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)  # fmt: skip
ASKED = b"GET /livez HTTP/1.1\r\n"


def peer(daemon: Daemon, said: bytes = b"") -> socket.socket:
    host, _, port = daemon.address.removeprefix("http://").partition(":")
    made = socket.create_connection((host, int(port)), timeout=10)
    made.sendall(said)
    return made


@contextmanager
def held(daemon: Daemon, said: bytes) -> Generator[Sequence[socket.socket], None, None]:
    with ExitStack() as stack:
        yield [stack.enter_context(peer(daemon, said)) for _ in range(HELD)]


def all_said(stream: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    try:
        while part := stream.recv(65_536):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Generator[Daemon, None, None]:
    with Home(tmp_path_factory.mktemp("walls")).daemon() as running:
        running.wait_until_ready()
        yield running


@pytest.mark.parametrize(
    "said",
    [
        PREFACE,
        ASKED + HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABk\r\n\r\n" + PREFACE,
        b"",
        b"GET /jobs HTTP/1.1\r\nHo",
    ],
    ids=["http2", "h2c", "nothing", "half a head"],
)
def test_silent_peers_keep_nobody_out(daemon: Daemon, said: bytes) -> None:
    with held(daemon, said):
        for path in ("/livez", "/readyz", "/metrics", "/status", "/jobs"):
            assert ask(daemon.address, path).status == 200


def test_probes_are_answered_while_every_other_place_is_taken(daemon: Daemon) -> None:
    with held(daemon, SLOW_BODY):
        full = ask(daemon.address, "/status")
        assert (full.status, full.headers["retry-after"]) == (503, "1")
        for path in ("/livez", "/readyz", "/metrics"):
            assert ask(daemon.address, path).status == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (ASKED + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /jobs HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (ASKED + HOST + b"X: " + b"a" * 17_000 + b"\r\n\r\n", 431),
        (ASKED + HOST + b"X: a\r\n" * 3_000 + b"\r\n", 431),
        (ASKED + HOST + b"X: " + b"a" * 16_000 + b"\r\nConnection: close\r\n\r\n", 200),
        (ASKED + HOST + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\nno request\r\n\r\n", 200),
        (ASKED + HOST + b"Connection: upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            b"no request\r\n\r\n", 200),
        (PREFACE, 400),
    ],
    ids=["both lengths", "old and chunked", "a long header", "many headers", "just within",
        "h2c", "websocket", "http2"],
)  # fmt: skip
def test_only_plain_http_1_is_spoken(daemon: Daemon, request_bytes: bytes, status: int) -> None:
    with peer(daemon, request_bytes) as stream:
        answer = all_said(stream)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert b" 101 " not in answer
