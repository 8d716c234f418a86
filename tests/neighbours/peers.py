"""Hostile peers of the web side: silent, slow, reset, garbage, floods, readers that do not read."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
from pathlib import Path
from random import Random

from tests.neighbours.scene import Act, Scene

HELD_MAX = 150
HEAD = b"Host: localhost\r\n"
STARTS = (
    b"",
    b"GET / HT",
    b"GET /jobs HTTP/1.1\r\nHo",
    b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n"
        b"Content-Length: 90\r\n\r\n{",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    b"GET /jobs/1?wait=30 HTTP/1.1\r\n" + HEAD + b"\r\n",
)  # fmt: skip
BODIES = (
    b"[" * 20_000,
    b'{"kind": "innocent", "payload": NaN}',
    b'{"kind": "work", "payload": "\\ud800"}',
    b'{"kind": "work", "run_at": "-infinity"}',
    b'{"kind": "work", "priority": 1e400}',
    b'{"kind": ["work"]}',
    b"\xff\xfe\0{}",
    b'{"kind": "' + b"x" * 50_000 + b'"}',
    b"null",
)
PATHS = (
    b"/status",
    b"/metrics",
    b"/jobs?limit=-1",
    b"/jobs/99999999999999999999",
    b"/%00%ff",
    b"/",
)
LEFT = 12  # descriptors that the daemon may still open, beside those that it has
RESET = struct.pack("ii", 1, 0)


def hold(scene: Scene, rng: Random) -> None:
    """Many connections that say the beginning of something, and nothing more."""
    said = rng.choice(STARTS)
    with contextlib.ExitStack() as stack:
        for _ in range(rng.randint(20, HELD_MAX)):
            with contextlib.suppress(OSError):
                stack.enter_context(scene.connection()).sendall(said)
        scene.wait(60)


def drip(scene: Scene, rng: Random) -> None:
    """One byte at a time."""
    request = b"GET /status HTTP/1.1\r\n" + HEAD + b"X: " + bytes(rng.choices(b"abc", k=400))
    with scene.connection() as peer:
        for byte in request:
            if scene.is_over:
                return
            peer.send(bytes([byte]))
            scene.wait(0.02)


def reset(scene: Scene, rng: Random) -> None:
    """Connections that are cut off at once, or after some words."""
    while not scene.is_over:
        with contextlib.suppress(OSError), scene.connection() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            peer.sendall(rng.choice(STARTS))
        scene.wait(rng.uniform(0, 0.02))


def garble(scene: Scene, rng: Random) -> None:
    while not scene.is_over:
        with contextlib.suppress(OSError), scene.connection() as peer:
            peer.sendall(rng.randbytes(rng.randint(1, 5_000)) + b"\r\n\r\n")
            peer.settimeout(0.2)
            peer.recv(4_096)


def flood(scene: Scene, rng: Random) -> None:
    """Requests one after the other, on connections that stay, or on new ones."""
    while not scene.is_over:
        with contextlib.suppress(OSError), scene.connection() as peer:
            _ask_often(scene, peer, rng)


def _ask_often(scene: Scene, peer: socket.socket, rng: Random) -> None:
    for _ in range(rng.choice((1, 50))):
        if scene.is_over:
            return
        peer.sendall(_request(rng))
        peer.recv(65_536)


def _request(rng: Random) -> bytes:
    if rng.random() < 0.5:
        return b"GET " + rng.choice(PATHS) + b" HTTP/1.1\r\n" + HEAD + b"\r\n"
    body = rng.choice(BODIES)
    head = b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def stop_reading(scene: Scene, rng: Random) -> None:
    """Followers of events that read no more."""
    with contextlib.ExitStack() as stack:
        for _ in range(rng.randint(5, 60)):
            with contextlib.suppress(OSError):
                peer = stack.enter_context(scene.connection())
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                peer.sendall(b"GET /events HTTP/1.1\r\n" + HEAD + b"\r\n")
        scene.wait(60)


def use_up_descriptors(scene: Scene, rng: Random) -> None:
    """The daemon's limit is near what it has open, and connections take the rest."""
    pid = scene.daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    in_use = max(int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir())
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (in_use + LEFT, before[1]))
    try:
        hold(scene, rng)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


PEERS: tuple[Act, ...] = (
    hold, drip, reset, garble, flood, stop_reading, use_up_descriptors,
)  # fmt: skip
