"""Bearer tokens: whose a request is, and what that one may do. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from attrs import define

from musterd.config.credentials import BearerToken
from musterd.config.settings import HttpScope

NOBODY = BearerToken("", "", ("admin",))  # whoever asks where no token is asked for


def may(token: BearerToken, scope: HttpScope) -> bool:
    """`admin` may do everything; the others each what they say."""
    return "admin" in token.scopes or scope in token.scopes


@define(eq=False)
class Keys:
    """All tokens; where there are none, everybody who can reach the daemon may do everything. A
    reload puts others in their place.
    """

    tokens: Sequence[BearerToken] = ()

    def holder(self, authorization: str) -> BearerToken | None:
        """Gives whose token stands in an `Authorization` header; None = nobody's.

        It takes as long whichever token it is, or is like.
        """
        if not self.tokens:
            return NOBODY
        scheme, _, given = authorization.partition(" ")
        found: BearerToken | None = None
        for token in self.tokens:
            same = hmac.compare_digest(given.strip().encode("latin-1"), token.secret.encode())
            found = token if same else found
        return found if scheme.lower() == "bearer" else None
