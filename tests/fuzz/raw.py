"""Requests that were whole once: bytes turned, cut out, doubled and put in, sent as they are."""

from __future__ import annotations

import contextlib
import re
import socket
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

from tests.fuzz.mutating import changed

THREADS = 12
ANSWER_SECONDS = 12.0  # more than the daemon itself waits for anything
CHANGES_MAX = 2
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
BODY = b'{"kind": "noop", "payload": {"a": [1, "x"]}, "priority": 3, "delay_seconds": 1.5}'
JSON = b"Content-Type: application/json\r\n"
LINES = (
    b"GET /jobs?state=failed&kind=noop&limit=5&cursor=YmVmb3JlIDU HTTP/1.1\r\n",
    b"GET /jobs/1?tenant=default HTTP/1.1\r\n",
    b"POST /jobs/1/cancel HTTP/1.1\r\n",
    b"POST /targets/a%2Fb/jobs/1/resume/ HTTP/1.1\r\n",
    b"GET /targets/a%2Fb HTTP/1.1\r\n",
    b"POST /queue/resume HTTP/1.1\r\n",
    b"GET /status HTTP/1.1\r\nAuthorization: Bearer x\r\nOrigin: http://a\r\n",
    b"GET /openapi.json HTTP/1.1\r\nAccept-Encoding: gzip\r\n",
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n",
    b"GET /metrics HTTP/1.0\r\n",
)
WHOLE = (
    *(line + b"Host: localhost\r\n\r\n" for line in LINES),
    b"POST /jobs HTTP/1.1\r\nHost: localhost\r\n" + JSON
    + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    b"POST /jobs HTTP/1.1\r\nHost: localhost\r\n" + JSON
    + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
)  # fmt: skip
PIECES = (
    *(b"\0", b"\r\n", b"\r\n\r\n", b"\xff\xfe", b"%00", b"%ff", b"%2F", b"%", b"../", b"//", b"&"),
    *(b"9" * 30, b"-1", b"1e999", b"NaN", b'"', b"{", b"[" * 200, b"\\ud800", b"\\u0000", b" "),
    *(b"Host: b\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"x" * 20_000),
    *(b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Content-Length: -1\r\n", b"null"),
    *(
        b"Upgrade: h2c\r\nConnection: upgrade\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"FFFFFFFFF\r\n",
    ),
)


def send_all(address: str, count: int, seed: int) -> Counter[str]:
    """Sends so many; gives how often each status came, `none` where the connection just ended."""
    host, port = address.removeprefix("http://").split(":")
    rng = Random(seed)
    inputs = [_changed(rng) for _ in range(count)]
    with ThreadPoolExecutor(THREADS) as pool:
        return Counter(pool.map(partial(_send, (host, int(port))), inputs))


def _changed(rng: Random) -> bytes:
    return changed(rng, rng.choice(WHOLE), PIECES, CHANGES_MAX)


def _send(place: tuple[str, int], request: bytes) -> str:
    with socket.create_connection(place, ANSWER_SECONDS) as peer:
        with contextlib.suppress(OSError):
            peer.sendall(request)
            peer.shutdown(socket.SHUT_WR)
        statuses = STATUS.findall(b"".join(_received(peer)))
    return max(statuses).decode() if statuses else "none"


def _received(peer: socket.socket) -> Sequence[bytes]:
    parts: list[bytes] = []
    with contextlib.suppress(ConnectionResetError):
        while part := peer.recv(65536):
            parts.append(part)
    return parts
