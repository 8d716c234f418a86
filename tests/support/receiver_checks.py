"""Checks a webhook as its receiver would, by the words of the Standard Webhooks specification.
Shares no line with what signs.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

TOLERANCE_SECONDS = 300


def is_genuine(
    secret: str, headers: Mapping[str, str], body: bytes, now: float | None = None
) -> bool:
    """Whether one of the signatures is of this secret; and, given `now`, the moment believable."""
    stamp = headers["webhook-timestamp"]
    if now is not None and abs(now - int(stamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.split("_", 1)[1])
    signed = b".".join((headers["webhook-id"].encode(), stamp.encode(), body))
    wanted = base64.b64encode(hmac.digest(key, signed, "sha256"))
    found = headers.get("webhook-signature", "").split(" ")
    given = [text[3:].encode() for text in found if text.startswith("v1,")]
    return any(hmac.compare_digest(wanted, one) for one in given)
