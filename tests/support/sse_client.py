"""A reader of server-sent events on a bare socket: what a browser does, without one."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

TIMEOUT_SECONDS = 20.0


@attrs.frozen
class Told:
    """One event as it came. `id`: where it is a whole number."""

    name: str
    id: int | None
    data: Any


class Refused(Exception):
    """The answer was no stream."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}: {body.decode()}")
        self.status = status
        self.body = body


class Stream:
    """An open stream. `is_whole`: it has come to its proper end."""

    def __init__(self, sock: socket.socket, rest: bytes, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.is_whole = False
        self.retry_ms: int | None = None
        self._sock = sock
        self._raw: bytes = rest
        self._text: bytes = b""
        self._told: deque[Told] = deque()
        self._chunked = headers.get("transfer-encoding") == "chunked"

    def events(self, seconds: float = TIMEOUT_SECONDS) -> Iterator[Told]:
        """What comes, until the stream ends or is cut off, or for so long."""
        deadline = time.monotonic() + seconds
        while True:
            self._read_whole_ones()
            while self._told:
                yield self._told.popleft()
            if self.is_whole or not self._receive(deadline - time.monotonic()):
                return

    def take(self, count: int, name: str = "") -> list[Told]:
        """So many events (of one name), whatever else comes between. Fails if they do not come."""
        found: list[Told] = []
        if not count:
            return found
        for told in self.events():
            if told.name == name or not (name or told.name == "ping"):
                found.append(told)
            if len(found) == count:
                return found
        raise AssertionError(f"only {len(found)} of {count}: {found}")

    def until(self, holds: Callable[[Told], bool], seconds: float = TIMEOUT_SECONDS) -> Told:
        for told in self.events(seconds):
            if holds(told):
                return told
        raise AssertionError("it did not come")

    @property
    def port(self) -> int:
        """Our own end."""
        found: int = self._sock.getsockname()[1]
        return found

    def close(self) -> None:
        self._sock.close()

    def _receive(self, seconds: float) -> bool:
        """Gives False where nothing more comes, or not in time."""
        if seconds <= 0:
            return False
        self._sock.settimeout(seconds)
        try:
            data = self._sock.recv(65536)
        except (TimeoutError, ConnectionError):
            return False
        self._raw += data
        self._unwrap()
        if not data and not self._chunked:
            self.is_whole = True
        return bool(data) or self.is_whole

    def _unwrap(self) -> None:
        if not self._chunked:
            self._text, self._raw = self._text + self._raw, b""
            return
        while True:
            head, found, rest = self._raw.partition(b"\r\n")
            if not found:
                return
            size = int(head, 16)
            if len(rest) < size + 2:
                return
            assert rest[size : size + 2] == b"\r\n", "a chunk does not end where it should"
            self._text, self._raw = self._text + rest[:size], rest[size + 2 :]
            if size == 0:
                self.is_whole = True
                return

    def _read_whole_ones(self) -> None:
        self._unwrap()
        blocks = self._text.split(b"\n\n")
        self._text = blocks.pop()
        for block in blocks:
            fields = fields_of(block.decode())
            if "retry" in fields:
                self.retry_ms = int(fields["retry"])
            if "data" in fields:
                number = int(fields["id"]) if fields.get("id", "").isdecimal() else None
                name = fields.get("event", "message")
                self._told.append(Told(name, number, json.loads(fields["data"])))


def fields_of(block: str) -> dict[str, str]:
    """The fields of one event; comments have no name."""
    parted = (line.partition(": ") for line in block.splitlines())
    return {name: value for name, _, value in parted if name}


def opened(
    address: str,
    query: str = "",
    last_id: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    path: str = "/events",
) -> Stream:
    """Asks for events at `http://host:port`. Raises `Refused`, or `ConnectionError`."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
    try:
        asked = {"Host": "localhost", **(headers or {})}
        if last_id is not None:
            asked["Last-Event-ID"] = str(last_id)
        lines = [f"GET {path}{query} HTTP/1.1", *(f"{k}: {v}" for k, v in asked.items()), "", ""]
        sock.sendall("\r\n".join(lines).encode())
        return _answered(sock)
    except BaseException:
        sock.close()
        raise


@contextmanager
def stream(
    address: str, query: str = "", last_id: object = None, **named: Any
) -> Generator[Stream]:
    with contextlib.closing(opened(address, query, last_id, **named)) as opened_one:
        yield opened_one


def _answered(sock: socket.socket) -> Stream:
    raw = b""
    while b"\r\n\r\n" not in raw:
        data = sock.recv(65536)
        if not data:
            raise ConnectionResetError("closed before an answer")
        raw += data
    head, _, rest = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    status = int(first.split()[1])
    if status != 200:
        length = int(headers.get("content-length", 0))
        while len(rest) < length:
            rest += sock.recv(65536)
        raise Refused(status, rest)
    return Stream(sock, rest, headers)
