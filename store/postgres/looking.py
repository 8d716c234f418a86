"""What walks along the places of jobs, and claims none."""

from __future__ import annotations

from uuid import UUID

import attrs

from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.postgres import claim_rows, rows
from musterd.store.postgres.claiming import Claiming
from musterd.store.postgres.parts import Run
from musterd.store.queue import QueueView

DEPTH_BOUND = 10_000  # jobs are counted one by one up to here


@attrs.frozen
class Looking:
    """Begins where claims do: see `marks`. Tells them where jobs wait for room."""

    run: Run
    claiming: Claiming

    async def observe(self, limit: int, me: UUID | None, leased_max: int | None) -> QueueView:
        if self.claiming.marks.wants_look:
            ((firsts, walked),) = await self.run("first_places", {})
            self.claiming.marks.found(claim_rows.marks_of(firsts), int(walked))
        params = {"bound": limit, "me": me, "pauses": PAUSES_OF_THE_DEAD, "most": leased_max}
        view = rows.queue_view(await self._first("observe", params))
        if view.parked:
            self.claiming.expect_limits()
        return view

    async def next_due_seconds(self) -> float | None:
        seconds: float | None = (await self._first("next_due", {}))[0]
        return seconds

    async def waiting(self) -> int:
        """Queued jobs that are not yet due, parked or behind, counted up to the bound."""
        count: int = (await self._first("not_yet_due", {"bound": DEPTH_BOUND}))[0]
        return count

    async def _first(self, name: str, params: rows.Params) -> rows.Row:
        start = self.claiming.marks.for_a_look()
        return (await self.run(name, {**params, **claim_rows.beginning(start)}))[0]
