"""What an HTTP request and its answer are made of, and what can go wrong between them.

Apart from the client, so that a node that makes no calls never loads one.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import attrs

RETRY_AFTER_SECONDS_MAX = 3600.0
DEFAULT_PORTS = {"http": 80, "https": 443}
NOT_ESCAPED = "/?:@!$&'()*+,;=-._~%#[]"


class HttpTrouble(Exception):
    """There is no answer: no connection, a broken one, or the server does not speak HTTP."""


class NotSendable(Exception):
    """The request is not valid HTTP. The error does not quote it: it may hold a secret."""


class Origin(NamedTuple):
    """Where a connection leads."""

    scheme: str
    host: str
    port: int

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@attrs.frozen
class HttpRequest:
    """A request. `headers`, their names in lower case, lack only host and content-length."""

    method: str
    origin: Origin
    target: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)

    @classmethod
    def to(cls, url: str, method: str, headers: Mapping[str, str], body: bytes) -> HttpRequest:
        """Raises `NotSendable`."""
        return cls(method, *address_of(url), headers, body)


@attrs.frozen
class Answer:
    """A response. `headers` by lower-case name, the last of several; `overflowed`: the body was
    longer than asked for, and only its beginning was read.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    overflowed: bool

    @property
    def status_text(self) -> str:
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)


def address_of(url: str) -> tuple[Origin, str]:
    """Splits a URL into where to connect and what to ask for. Raises `NotSendable`."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise NotSendable from None
    query = f"?{parts.query}" if parts.query else ""
    return Origin(parts.scheme, host, port), quote(f"{parts.path or '/'}{query}", safe=NOT_ESCAPED)


def retry_after_seconds(
    headers: Mapping[str, str], seconds_max: float = RETRY_AFTER_SECONDS_MAX
) -> float | None:
    """How long the server asks to wait, at most `seconds_max`; None if it does not say.

    A date counts from the server's own clock, the `date` of its answer.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        seconds = float(value[:9])
    else:
        try:
            due, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("date", ""))
            seconds = (due - now).total_seconds()
        except (TypeError, ValueError):  # no date, or one of the two without its zone
            return None
    return max(0.0, min(seconds, seconds_max))
