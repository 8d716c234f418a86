"""Times as a client reads them. A row whose checks somebody went past may hold one that Python has
no value for: it is read as the first or the last that there is, so that it spoils no row beside it.
"""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.pq import Format

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def moment_of_text(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return FIRST if text.startswith("-") or text.endswith("BC") else LAST


class BoundedLoader(Loader):
    """psycopg's own for binary values, which knows nothing before the year 1 nor after 9999."""

    format = Format.BINARY

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        own = psycopg.adapters.get_loader(oid, Format.BINARY)
        assert own is not None  # psycopg brings it
        self._load = own(oid, context).load

    def load(self, data: Buffer) -> datetime:
        try:
            found: datetime = self._load(data)
        except psycopg.DataError:
            return FIRST if bytes(data)[0] & 0x80 else LAST
        return found


def read_all_times(adapters: AdaptersMap) -> None:
    """On one connection, whose statements give binary values."""
    adapters.register_loader("timestamptz", BoundedLoader)
