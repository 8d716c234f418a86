"""Asks the daemon over HTTP, briefly: it is on this machine, or there is none."""

from __future__ import annotations

import http.client
import json
import os
import socket
from typing import Any, cast

from musterd.config.credentials import resolve_http_token
from musterd.config.listen import UnixAddress, listen_address
from musterd.config.settings import Settings
from musterd.store.words import one_line

ASK_SECONDS = 1.0
USABLE = (http.client.OK, http.client.ACCEPTED)
ANSWER_BYTES_MAX = 16 * 1024 * 1024
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class DaemonSilent(Exception):
    """No daemon gave a usable answer. `is_gone`: nothing listens there; `is_slow`: somebody does,
    and has not answered in time.
    """

    def __init__(self, message: str, *, is_gone: bool = False, is_slow: bool = False) -> None:
        super().__init__(message)
        self.is_gone, self.is_slow = is_gone, is_slow


NOBODY = "no daemon answers"  # so begins what is said where one has to be started


def ask_daemon(settings: Settings, path: str, method: str = "GET") -> dict[str, Any]:
    """The JSON object at `path`. Raises `DaemonSilent` if there is none."""
    status, found = request(settings, path, method)
    if status in USABLE:
        return found
    raise DaemonSilent(f"the server at {settings.http.listen} is not musterd (HTTP {status})")


def request(
    settings: Settings, path: str, method: str = "GET", within_seconds: float = ASK_SECONDS
) -> tuple[int, dict[str, Any]]:
    """Status and JSON object of the answer; any error but 401 is one. Raises `DaemonSilent`."""
    token = resolve_http_token(settings, os.environ)
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection = _connection(settings.http.listen, within_seconds)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX)
        return answer.status, _parse(answer.status, body, settings.http.listen)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, TimeoutError):  # somebody is there
            waited = f"has not answered within {within_seconds:g} s"
            slow = f"the daemon at {settings.http.listen} {waited}: it is busy, or hangs"
            raise DaemonSilent(slow, is_slow=True) from error
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        said = f"{NOBODY} at {settings.http.listen} ({reason.lower()})"
        gone = isinstance(error, ConnectionRefusedError | FileNotFoundError)
        raise DaemonSilent(said, is_gone=gone) from error
    finally:
        connection.close()


def other_store(settings: Settings, where: str) -> str:
    """If the daemon that these settings reach works on another store than `where`, says so; else
    "", also where none answers.
    """
    try:
        tenants = ask_daemon(settings, "/status")["node"]["tenants"]
        stores = {one["name"]: str(one["store"]) for one in tenants}
    except (DaemonSilent, KeyError, TypeError):
        return ""
    its = stores.get(settings.tenant)
    if its is None or where in stores.values():
        return ""
    daemon = f"the daemon at {settings.http.listen} works on another store: {one_line(its)}"
    return f"{daemon} - give this verb the same --config, --set and environment"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, within_seconds: float) -> None:
        super().__init__("localhost", timeout=within_seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(listen: str, within_seconds: float) -> http.client.HTTPConnection:
    address = listen_address(listen)
    if address is None:
        raise DaemonSilent("no daemon can be asked: [http] listen is off")
    if isinstance(address, UnixAddress):
        return _UnixConnection(address.path, within_seconds)
    if address.port == 0:
        raise DaemonSilent("no daemon can be asked: [http] listen names no port")
    host = ANYWHERE.get(address.host, address.host)
    return http.client.HTTPConnection(host, address.port, timeout=within_seconds)


def _parse(status: int, body: bytes, listen: str) -> dict[str, Any]:
    if status == http.client.UNAUTHORIZED:
        raise DaemonSilent(f"the daemon at {listen} refuses the token: set http.token")
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DaemonSilent(f"the server at {listen} is not musterd (HTTP {status})")
    return cast("dict[str, Any]", found)
