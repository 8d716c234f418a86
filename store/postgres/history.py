"""The past of the queue in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs

from musterd.store.history import (
    ADDED_AFTER_SECONDS,
    MARKS_READ,
    ROWS_READ,
    STEPS_SECONDS,
    EndedJobs,
    Mark,
    Past,
    QueueLook,
    kept_seconds,
    past_from,
)
from musterd.store.postgres.statements import Params, Statements, numbers

STEPS = numbers(STEPS_SECONDS)


@attrs.frozen
class PostgresHistory:
    """See `store.history.History`."""

    statements: Statements

    async def add(self, ended: Sequence[EndedJobs], marks: Sequence[Mark]) -> float:
        params = {
            "steps": STEPS,
            "late": ADDED_AFTER_SECONDS,
            "ended": _objects(ended),
            "marks": _objects(marks),
        }
        ((at,),) = await self.statements.run("add_history", params)
        return float(at)

    async def look(self, seen: QueueLook) -> None:
        await self.statements.execute("look_history", {**seen._asdict(), "steps": STEPS})

    async def read(
        self, step_seconds: int, since: float, until: float, *, by_kind: bool = True
    ) -> Past:
        span: Params = {
            "step": step_seconds, "since": since, "until": until, "most": ROWS_READ,
            "by_kind": by_kind,
        }  # fmt: skip
        queue = await self.statements.run("queue_history", span)
        kinds = await self.statements.run("kind_history", span)
        marks = await self.statements.run("mark_history", {**span, "most": MARKS_READ})
        return past_from(queue, kinds, marks)

    async def trim(self, keep_seconds: float, batch: int) -> int:
        kept = kept_seconds(keep_seconds)
        ages = numbers(age for _, age in kept)
        ((done,),) = await self.statements.run(
            "trim_history", {"steps": STEPS, "ages": ages, "batch": batch}
        )
        return int(done)


def _objects(rows: Sequence[EndedJobs] | Sequence[Mark]) -> str:
    return json.dumps([row._asdict() for row in rows])
