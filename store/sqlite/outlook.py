"""The outlook in SQLite: there is none."""

from __future__ import annotations

from uuid import UUID

import trio

from musterd.store.outlook import Outlook


class SqliteOutlooks:
    """See `store.outlook`. Whoever writes to the file rings after its commit, or not at all."""

    async def look(self, me: UUID) -> Outlook | None:
        del me
        await trio.lowlevel.checkpoint()
        return None
