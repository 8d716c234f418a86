"""A small HTTP client for tests: one request, one answer, over TCP or a unix socket."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping

import attrs

from tests.support.message import Message

TIMEOUT_SECONDS = 10.0


@attrs.frozen
class Answer(Message):
    status: int


def ask(
    address: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    body: bytes | None = None,
) -> Answer:
    """Asks `http://host:port` or `unix:/path`. Blocks: from Trio, call it in a thread."""
    connection = _connection(address)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        answer = connection.getresponse()
        lowered = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(lowered, answer.read(), answer.status)
    finally:
        connection.close()


def _connection(address: str) -> http.client.HTTPConnection:
    if not address.startswith("unix:"):
        place = address.removeprefix("http://")
        return http.client.HTTPConnection(place, timeout=TIMEOUT_SECONDS)
    connection = http.client.HTTPConnection("localhost", timeout=TIMEOUT_SECONDS)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(TIMEOUT_SECONDS)
    connection.sock.connect(address.removeprefix("unix:"))
    return connection
