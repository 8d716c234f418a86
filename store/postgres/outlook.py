"""The outlook in PostgreSQL."""

from __future__ import annotations

from uuid import UUID

import attrs

from musterd.store.outlook import Outlook
from musterd.store.postgres.hints import Hints
from musterd.store.postgres.numbered import Numbered


@attrs.frozen
class PostgresOutlooks:
    """See `store.outlook` for what each method promises."""

    hints: Hints
    statement: Numbered

    async def look(self, me: UUID) -> Outlook | None:
        found = await self.hints.ask(self.statement, {"me": me})
        return Outlook(*found[0]) if found else None
