"""Looking over many SQLite files: one that nobody has written to holds nothing new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

import trio

from musterd.store.idle_tenant_scan import EVERYTHING, NOTHING, TenantActivity
from musterd.store.queue import IdleCheck

LOOKS_UNTIL_SURE = 240  # after so many looks at an unchanged file it is read all the same


class FileScan:
    """See `store.idle_tenant_scan.TenantScan`. Every commit is appended to the log beside a file,
    or begins that log anew, and both change its size or its time. A file has one daemon: leases
    that ran out are this one's own, and it knows of them.
    """

    def __init__(self) -> None:
        self._logs: dict[str, Path] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._unchanged: dict[str, int] = {}

    @property
    def tenants(self) -> list[str]:
        return list(self._logs)

    def add(self, tenant: str, file: Path) -> None:
        self._logs[tenant] = Path(f"{file}-wal")
        # So that not all are read at the same moment.
        self._unchanged[tenant] = len(self._logs) * 7 % LOOKS_UNTIL_SURE

    def remove(self, tenant: str) -> None:
        for known in (self._logs, self._seen, self._unchanged):
            known.pop(tenant, None)

    async def look(self, tenants: Sequence[str]) -> Mapping[str, TenantActivity]:
        await trio.lowlevel.checkpoint()
        return {tenant: self._activity(tenant, self._logs[tenant]) for tenant in tenants}

    async def check(self, tenants: Sequence[str], me: UUID) -> Mapping[str, IdleCheck]:
        """None rest: whoever writes to a file need not hint, and a look costs no statement."""
        del tenants, me
        await trio.lowlevel.checkpoint()
        return {}

    def _activity(self, tenant: str, log: Path) -> TenantActivity:
        now = _state_of(log)
        count = self._unchanged[tenant] = self._unchanged[tenant] + 1
        if now == self._seen.get(tenant) and count < LOOKS_UNTIL_SURE:
            return NOTHING
        self._seen[tenant] = now
        self._unchanged[tenant] = 0
        return EVERYTHING


def _state_of(log: Path) -> tuple[int, int]:
    try:
        found = log.stat()
    except OSError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)
