"""Lists of jobs for a screen."""

from __future__ import annotations

from musterd.store.board import (
    COUNTED_MAX,
    NOTE_LENGTH_MAX,
    TARGETS_NAMED,
    TEXT_LENGTH_MAX,
    BoardFilter,
    BoardJob,
    BoardView,
    Troubles,
    in_order,
)
from musterd.store.lifecycle import JobState
from musterd.store.postgres.arrays import words
from musterd.store.postgres.statements import Row, Run

FIELDS = len(BoardJob._fields)
STATE = BoardJob._fields.index("state")


class PostgresOverview:
    """See `store.board` for what each method promises."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def jobs(self, which: BoardFilter) -> BoardView:
        params = {
            "leased": which.leased,
            "queued": JobState.QUEUED in which.states,
            "succeeded": JobState.SUCCEEDED in which.states,
            "resting": words(which.resting),
            "kind": which.kind,
            "target": which.target,
            "bound": which.bound,
            "span": which.span,
            "note": NOTE_LENGTH_MAX,
            "text": TEXT_LENGTH_MAX,
        }
        found = await self._run("board", params)
        jobs = [_job(row[1:]) for row in found if row[1] is not None]
        return BoardView(found[0][0], in_order(jobs, which.states))

    async def troubles(self) -> Troubles:
        named = {"bound": COUNTED_MAX, "named": TARGETS_NAMED}
        ((count, first),) = await self._run("halted_targets", named)
        (oldest,) = await self._run("oldest_in_hand", {"bound": COUNTED_MAX})
        return Troubles(count, tuple(first), *oldest)


def _job(row: Row) -> BoardJob:
    columns = list(row[:FIELDS])
    columns[STATE] = JobState(columns[STATE])
    return BoardJob(*columns)
