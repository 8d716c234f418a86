"""Who is signed in. A browser cannot send a token with a link, so it gets a cookie of 128 random
bits. What they stand for is kept here, as fingerprints, until it is too old, the daemon ends, or
the token is removed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable

import trio
from attrs import define, field, frozen
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from musterd.config.credentials import BearerToken
from musterd.web.deps import Keys

SESSION_SECONDS = 12 * 3600.0
SESSIONS_MAX = 100  # of one token: the oldest ends
ID_BYTES = 16


@frozen
class _Session:
    token: bytes  # its fingerprint
    ends_local: float


@define(eq=False)
class Sessions:
    clock: Callable[[], float] = trio.current_time  # seconds that only grow
    _by_id: OrderedDict[bytes, _Session] = field(factory=OrderedDict[bytes, _Session], init=False)

    def begin(self, token: BearerToken) -> str:
        """Returns the id of a new session."""
        own = fingerprint(token.secret)
        now = self.clock()
        for key, session in list(self._by_id.items()):
            if session.ends_local <= now:
                del self._by_id[key]
        same = [key for key, session in self._by_id.items() if session.token == own]
        for key in same[: max(0, len(same) - SESSIONS_MAX + 1)]:
            del self._by_id[key]
        session_id = secrets.token_urlsafe(ID_BYTES)
        self._by_id[fingerprint(session_id)] = _Session(own, now + SESSION_SECONDS)
        return session_id

    def holder(self, session_id: str, keys: Keys) -> BearerToken | None:
        """The token of a session; None if the session has ended or the token is gone."""
        session = self._by_id.get(fingerprint(session_id))
        if session is None or session.ends_local <= self.clock():
            return None
        same = (one for one in keys.tokens if fingerprint(one.secret) == session.token)
        return next(same, None)

    def end(self, session_id: str) -> None:
        self._by_id.pop(fingerprint(session_id), None)

    def __len__(self) -> int:
        return len(self._by_id)


def fingerprint(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def cookie_name(headers: Headers) -> str:
    """Cookies ignore ports: this keeps several daemons of one machine apart."""
    _, _, port = headers.get("host", "").rpartition(":")
    return f"musterd-{port}" if port.isascii() and port.isdigit() else "musterd"


def session_id_of(headers: Headers) -> str | None:
    return cookie_parser(headers.get("cookie", "")).get(cookie_name(headers))


def cookie(headers: Headers, session_id: str) -> str:
    """The header that begins a session, or ends it if the id is empty. Secure behind TLS."""
    is_safe = headers.get("x-forwarded-proto", "").lower() == "https"
    age_seconds = int(SESSION_SECONDS) if session_id else 0
    return (
        f"{cookie_name(headers)}={session_id}; Path=/; Max-Age={age_seconds}; HttpOnly;"
        f" SameSite=Strict{'; Secure' if is_safe else ''}"
    )
