"""Everything that decides whether one job can run now, as one moment of the file shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import YOUNG_SECONDS
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.nodes import read_nodes
from musterd.store.why_facts import (
    LEASED_BOUND,
    LINE_BOUND,
    NODES_BOUND,
    JobFacts,
    Leased,
    Line,
    TargetJob,
    WhyFacts,
)


def why_facts(database: Database, job_id: int) -> WhyFacts | None:
    """None = there is no such job."""
    if not 0 < job_id <= rows.ID_MAX:
        return None
    with database.reading("asking why") as now:
        found = database.rows("why_job", {"id": job_id, "now": now})
        if not found:
            return None
        *fields, outcome, _now, paused_at, paused_by = found[0]
        in_target = database.rows("why_target", {"id": job_id})
        ((behind_before, parked_before),) = database.rows(
            "why_before", {"id": job_id, "bound": LINE_BOUND}
        )
        leased = database.rows("why_leased", {"now": now, "bound": LEASED_BOUND})
        return WhyFacts(
            job=_job(fields, outcome),
            now=rows.moment_at(now),
            paused_at=rows.moment(paused_at),
            paused_by=paused_by,
            in_target=tuple(_target_job(row) for row in in_target),
            behind_before=behind_before,
            parked_before=parked_before,
            line=_line(database, fields, now),
            leased=tuple(_leased(row) for row in leased),
            leased_total=leased[0][-1] if leased else 0,
            nodes=tuple(
                one for one in read_nodes(database, now, YOUNG_SECONDS, NODES_BOUND) if one.is_live
            ),
            parked_kinds=frozenset(kind for (kind,) in database.rows("parked_kinds")),
        )


def _line(database: Database, fields: list[Any], now: int) -> Line:
    own_id, own_target = fields[0], fields[15]
    mine = {"id": own_id, "own_priority": fields[3], "own_run_at": fields[4], "now": now}
    before: Counter[str] = Counter()
    every: Counter[str] = Counter()
    seen: set[str] = set()
    of_target, walked, includes_it = 0, 0, False
    for job_id, kind, target, holder, count, is_mine, first in _claimable(database, mine):
        walked += count
        includes_it = includes_it or bool(is_mine)
        if target is None or holder == job_id or (holder is None and target not in seen):
            every[kind] += count
            before[kind] += first
        if target is not None:
            seen.add(target)
            of_target += first and target == own_target and job_id != holder
    return Line(+before, every, of_target, walked < LINE_BOUND, includes_it)


def _claimable(database: Database, mine: dict[str, Any]) -> Iterator[rows.Row]:
    """The first of them, priority after priority."""
    left = LINE_BOUND
    for priority, _ in database.rows("due_priorities", mine):
        found = database.rows("why_line", {**mine, "priority": priority, "count": left})
        yield from found
        left -= sum(row[4] for row in found)
        if left <= 0:
            return


def _job(fields: list[Any], outcome: str | None) -> JobFacts:
    values = list(fields)
    values[2] = JobState(values[2])
    for place in (4, 5, 6, 10, 12, 17):  # the times
        values[place] = rows.moment(values[place])
    values[16] = bool(values[16])
    values.append(None if outcome is None else AttemptOutcome(outcome))
    return JobFacts(*values)


def _target_job(row: rows.Row) -> TargetJob:
    job_id, state, since, run_at, reason, holds = row
    return TargetJob(
        job_id, JobState(state), rows.moment(since), rows.moment_at(run_at), reason, bool(holds)
    )


def _leased(row: rows.Row) -> Leased:
    job_id, kind, node, worker, ran, _ = row
    return Leased(job_id, kind, node, worker, None if ran is None else ran / rows.SECOND)
