"""The outlook in PostgreSQL."""

from __future__ import annotations

from uuid import UUID

import attrs
import trio

from musterd.store.outlook import IdleCheck
from musterd.store.postgres.hints import Hints
from musterd.store.postgres.marks import Marks
from musterd.store.postgres.numbered import Numbered


@attrs.frozen
class PostgresIdleChecks:
    """See `store.outlook` for what each method promises."""

    hints: Hints
    statement: Numbered
    marks: Marks

    async def check(self, me: UUID) -> IdleCheck | None:
        if self.marks.hide_some:  # a look at all is dear, and what does not see all is no proof
            await trio.lowlevel.checkpoint()
            return None
        found = await self.hints.ask(self.statement, {"me": me})
        return IdleCheck(*found[0]) if found else None
