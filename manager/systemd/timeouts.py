"""How long a drain may take in all: what systemd's own limit must be above. Pure."""

from __future__ import annotations

import attrs

from musterd.config.settings import Settings, Shutdown

CLOSING_SECONDS = 5.0  # of the store, see `tenancy`
SLACK_SECONDS = 20.0


def drain_seconds_max(settings: Settings) -> float:
    """Gives the longest time from the request to stop to the end of the process: each part of
    `[shutdown]` in turn, then the last webhooks and the last writes.
    """
    shutdown = settings.shutdown
    names = [one.name for one in attrs.fields(Shutdown) if one.name.endswith("_seconds")]
    parts = sum(float(getattr(shutdown, name)) for name in names)
    mail = settings.webhooks.timeout_seconds + shutdown.dismiss_seconds
    return parts + mail + CLOSING_SECONDS + SLACK_SECONDS
