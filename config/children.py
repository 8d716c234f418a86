"""What processes that run the user's code see of the daemon's environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from musterd.config.settings import Settings

# What a daemon is told and its jobs are not: the store, our own settings, systemd's affairs.
_OURS = re.compile(
    r"MUSTERD_.*|PG[A-Z]+|(.*_)?DSN|NOTIFY_SOCKET|LISTEN_.*|WATCHDOG_.*|CREDENTIALS_DIRECTORY"
)


def secrets_of(settings: Settings) -> Sequence[str]:
    """What the daemon is told and its jobs are not."""
    store = settings.store
    return [store.url, store.listen_url, settings.http.token, *settings.webhooks.secret]


def children_environment(environ: Mapping[str, str], secrets: Iterable[str]) -> Mapping[str, str]:
    """`environ` without our own variables, and without any whose value holds one of `secrets`.
    Python programs that children start print at once, unless the daemon is told otherwise.
    """
    hidden = [secret for secret in secrets if secret]
    passed_on = {
        name: value
        for name, value in environ.items()
        if not _OURS.fullmatch(name) and not any(secret in value for secret in hidden)
    }
    return {"PYTHONUNBUFFERED": "1", **passed_on}
