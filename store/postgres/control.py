"""Acting on jobs, one by one and many at once."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from musterd.store.control import BulkResult, Candidate, ControlResult, SelectedJobs, Selection
from musterd.store.lifecycle import Action, JobState
from musterd.store.postgres.statements import Params, Row, Statements, numbers, texts, words

ID_MAX = 2**63 - 1


@attrs.frozen
class PostgresControl:
    """See `store.control.Control`."""

    statements: Statements

    async def apply(self, action: Action, job_id: int) -> ControlResult:
        params = {"action": action.value, "id": job_id}
        (row,) = await self.statements.run("control", params)
        return _control_result(row)

    async def select(self, which: Selection, after_id: int, span: int) -> SelectedJobs:
        params = selection_params(which, after_id, span)
        return _look(await self.statements.run("select_jobs", params))

    async def apply_many(self, action: Action, ids: Sequence[int], which: Selection) -> BulkResult:
        params, statements = bulk_params(action, ids, which), self.statements
        with statements.limit("control_many"):
            async with statements.shared.use("control_many") as conn:
                async with conn.pipeline():  # holders before their jobs, as in every statement
                    await statements.send(conn, "lock_targets_of", {"ids": params["ids"]})
                    cursor = await statements.send(conn, "control_many", params)
                (row,) = await cursor.fetchall()
        return BulkResult._make(map(frozenset, row))


def _control_result(row: Row) -> ControlResult:
    found, before, after, requested, allowed = row
    if not found:
        return ControlResult(found, None, None, requested, allowed)
    return ControlResult(found, JobState(before), JobState(after), requested, allowed)


def selection_params(which: Selection, after_id: int, span: int) -> Params:
    return {
        "states": words(which.states),
        "walks": which.walks,
        "resting": words(which.resting),
        "leased": which.leased,
        "kinds": texts(which.kinds) if which.kinds else None,
        "targets": texts(which.targets) if which.targets else None,
        "priorities": numbers(which.priorities) if which.priorities else None,
        "older": which.older_seconds,
        "after": after_id,
        "until": ID_MAX if which.until_id is None else which.until_id,
        "span": span,
    }


def _look(found: Sequence[Row]) -> SelectedJobs:
    fitting = [Candidate(id_, kind, JobState(state)) for id_, kind, state, fits in found if fits]
    return SelectedJobs(fitting, found[-1][0] if found else None)


def bulk_params(action: Action, ids: Sequence[int], which: Selection) -> Params:
    return {
        "action": action.value,
        "ids": numbers(ids),
        "states": words(which.states),
        "older": which.older_seconds,
    }
