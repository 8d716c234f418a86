"""Reading what the doctor has found."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.console.doctor.judges import Finding

# Every check, in the order of the report.
NAMES = (
    *("configuration", "leases", "secrets", "permissions", "kinds", "hooks", "schedules"),
    *("systemd", "open files", "disk", "guard"),
    *("store", "schema", "server", "durability", "pooler", "session", "clock", "horizon"),
    *("replication", "connections", "rights", "autovacuum", "dead rows", "places"),
    *("nodes", "file", "file system"),
)
LEVELS = ("ok", "warn", "fail")


def worst(found: Sequence[Finding]) -> str:
    return max((one.level for one in found), key=LEVELS.index)


def said(found: Sequence[Finding]) -> str:
    """All that is not well, with its advice. Whatever is not well says what to do."""
    ill = [one for one in found if one.level != "ok"]
    assert all(one.wanted and one.advice for one in ill)
    return "\n".join(f"{one.found} | {one.wanted} | {one.advice}" for one in ill)
