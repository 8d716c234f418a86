"""The headers of a webhook, as Standard Webhooks wants them. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

from musterd import __version__

VERSION = "v1"


def signed_headers(
    keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Gives all headers but what the connection adds. Each key signs; without one nothing does."""
    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"musterd/{__version__}",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
    }
    if keys:
        signed = [_signature(key, message_id, timestamp, body) for key in keys]
        headers["webhook-signature"] = " ".join(signed)
    return headers


def _signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    content = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"
