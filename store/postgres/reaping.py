"""Ends leases that ran out, and lets go on what waits for a limit that is no more."""

from __future__ import annotations

import attrs

from musterd.store.leases import Reaped, ReapRequest
from musterd.store.lifecycle import JobState
from musterd.store.postgres import rows
from musterd.store.postgres.arrays import texts
from musterd.store.postgres.claiming import Send
from musterd.store.postgres.marks import Marks
from musterd.store.postgres.parts import Execute, Run
from musterd.store.postgres.pool import Pool
from musterd.store.postgres.time_limit import TimeLimit

UNPARKED_AT_ONCE = 10_000  # of a kind whose cap is gone


@attrs.frozen
class Reaping:
    pool: Pool
    run: Run
    execute: Execute
    send: Send
    marks: Marks
    timeout_seconds: float

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        """See `store.leases.Leases.reap`."""
        if uncapped := [kind for kind, rule in request.rules.items() if not rule.capped]:
            unparking = {"kinds": texts(uncapped), "batch": UNPARKED_AT_ONCE}
            await self.execute("unpark_uncapped", unparking)
        params = rows.reap_request(request)
        found = await self.run("reap", {**params, "targeted": False})
        if found and found[-1][0] is None:
            found.pop()
            found += await self._reap_targeted({**params, "batch": request.batch - len(found)})
        reaped = [rows.reaped(row) for row in found]
        if any(one.state is JobState.QUEUED for one in reaped):
            self.marks.look_at_all()  # their places are old
        return reaped

    async def _reap_targeted(self, params: rows.Params) -> list[rows.Row]:
        """Leases of jobs with a target; the targets are passed on in a statement that sees it."""
        with TimeLimit(self.timeout_seconds, "reap"):
            async with self.pool.use("reaping") as conn:
                await conn.execute("begin", prepare=False)
                reaping = await self.send(conn, "reap", {**params, "targeted": True})
                found = await reaping.fetchall()
                targets = texts(sorted({row[5] for row in found}))
                await self.send(conn, "hand_over", {"targets": targets, "ring": True})
                await conn.execute("commit", prepare=False)
        return found
