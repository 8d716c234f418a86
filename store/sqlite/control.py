"""Acting on jobs on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.control import BulkResult, ControlResult, SelectedJobs, Selection
from musterd.store.lifecycle import Action
from musterd.store.sqlite import controlling, selecting
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.runner import Call


class SqliteControl:
    """See `store.control.Control`."""

    def __init__(self, call: Call, hints: Hints) -> None:
        self._call, self._hints = call, hints

    async def apply(self, action: Action, job_id: int) -> ControlResult:
        done = await self._call(controlling.control, action, job_id)
        if done.requested:
            self._hints.ring(job_id)
        elif done.allowed:
            self._hints.ring()
        return done

    async def select(self, which: Selection, after_id: int, span: int) -> SelectedJobs:
        return await self._call(selecting.select_jobs, which, after_id, span)

    async def apply_many(self, action: Action, ids: Sequence[int], which: Selection) -> BulkResult:
        step, freed = await self._call(selecting.control_many, action, ids, which)
        for job_id in step.requested:
            self._hints.ring(job_id)
        if freed:
            self._hints.ring()
        return step
