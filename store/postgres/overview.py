"""Lists of jobs for a screen."""

from __future__ import annotations

from musterd.store.lifecycle import JobState
from musterd.store.overview import (
    COUNTED_MAX,
    ENDS_LOOKED,
    FAILING_KINDS_MAX,
    FAILING_SECONDS,
    NOTE_SHOWN_MAX,
    TARGETS_NAMED,
    TEXT_LENGTH_MAX,
    KindEnds,
    OverviewFilter,
    OverviewJob,
    OverviewView,
    Troubles,
    in_order,
)
from musterd.store.postgres.statements import Row, Run, words

FIELDS = len(OverviewJob._fields)
STATE = OverviewJob._fields.index("state")


class PostgresOverview:
    """See `store.overview` for what each method promises."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def jobs(self, which: OverviewFilter) -> OverviewView:
        params = {
            "leased": which.leased,
            "queued": JobState.QUEUED in which.states,
            "succeeded": JobState.SUCCEEDED in which.states,
            "resting": words(which.resting),
            "kind": which.kind,
            "target": which.target,
            "bound": which.bound,
            "span": which.span,
            "note": NOTE_SHOWN_MAX,
            "text": TEXT_LENGTH_MAX,
        }
        found = await self._run("overview", params)
        jobs = [_job(row[1:]) for row in found if row[1] is not None]
        return OverviewView(found[0][0], in_order(jobs, which.states))

    async def troubles(self) -> Troubles:
        named = {"bound": COUNTED_MAX, "named": TARGETS_NAMED}
        ((count, first),) = await self._run("halted_targets", named)
        ((job_id, kind, seconds, late),) = await self._run("oldest_in_hand", {"bound": COUNTED_MAX})
        wanted = {"seconds": FAILING_SECONDS, "kinds": FAILING_KINDS_MAX, "bound": ENDS_LOOKED}
        failing = tuple(map(KindEnds._make, await self._run("failing_kinds", wanted)))
        return Troubles(count, tuple(first), job_id, kind, seconds, late, failing)


def _job(row: Row) -> OverviewJob:
    columns = list(row[:FIELDS])
    columns[STATE] = JobState(columns[STATE])
    return OverviewJob(*columns)
