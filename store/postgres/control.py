"""Acting on jobs on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from musterd.store.control import ControlResult, Look, Selection, Step
from musterd.store.lifecycle import Action
from musterd.store.postgres import rows, selecting
from musterd.store.postgres.parts import Statements


@attrs.frozen
class PostgresControl:
    """See `store.control.Control`."""

    statements: Statements

    async def apply(self, action: Action, job_id: int) -> ControlResult:
        params = {"action": action.value, "id": job_id}
        (row,) = await self.statements.run("control", params)
        return rows.control_result(row)

    async def select(self, which: Selection, after_id: int, span: int) -> Look:
        params = selecting.selection(which, after_id, span)
        return selecting.look(await self.statements.run("select_jobs", params))

    async def apply_many(self, action: Action, ids: Sequence[int], which: Selection) -> Step:
        params, statements = selecting.bulk(action, ids, which), self.statements
        with statements.limit("control_many"):
            async with statements.shared.use("control_many") as conn:
                async with conn.pipeline():  # holders before their jobs, as everybody does
                    await statements.send(conn, "lock_targets_of", {"ids": params["ids"]})
                    cursor = await statements.send(conn, "control_many", params)
                (row,) = await cursor.fetchall()
        return Step._make(map(frozenset, row))
