"""The secrets that sign webhooks, as they are written in a configuration."""

import base64
import binascii

from musterd.config.faults import Unfit

PREFIX = "whsec_"
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64

_HINT = "`echo whsec_$(openssl rand -base64 32)` makes one"


def signing_key(secret: str) -> bytes:
    """Gives the key in a `whsec_…` secret; raises Unfit, whose reader must not show what was
    found.
    """
    wanted = f"{PREFIX} and {KEY_BYTES_MIN} to {KEY_BYTES_MAX} random bytes in base64"
    if not secret.startswith(PREFIX):
        raise Unfit(wanted, _HINT)
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise Unfit(wanted, _HINT) from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise Unfit(wanted, _HINT)
    return key
