"""What an examination finds, and how one is made up: values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import attrs

Level = Literal["ok", "warn", "fail"]
NAMES = (
    *("leases", "secrets", "permissions", "kinds", "hooks", "schedules"),
    *("systemd", "open files", "disk"),
    *("store", "schema", "server", "durability", "pooler", "session", "clock", "horizon"),
    *("replication", "connections", "rights", "autovacuum", "dead rows", "nodes"),
    *("file", "file system"),
)
Stop = Literal["unavailable", "misconfigured"]  # why nothing more can be asked of a store


@attrs.frozen
class Finding:
    """One thing that was looked at, by one of `NAMES`. `wanted` and `advice` are empty where all is
    well.
    """

    name: str
    level: Level
    found: str
    wanted: str = ""
    advice: str = ""
    tenant: str = ""  # whose store it is about; "" = this machine, or all
    group: str = ""  # that of the check
    stop: Stop | None = None


@attrs.frozen
class Check:
    """Something to look at. `look` may raise, and may take its time: the rounds see to both."""

    name: str
    group: str
    look: Callable[[], Awaitable[Iterable[Finding]]]
    tenant: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, "ok", found)


def warn(name: str, found: str, wanted: str, advice: str) -> Finding:
    return Finding(name, "warn", found, wanted, advice)


def fail(name: str, found: str, wanted: str, advice: str) -> Finding:
    return Finding(name, "fail", found, wanted, advice)
