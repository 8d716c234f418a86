"""Nodes, and where a job stands: one moment of the file throughout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import (
    FORGET_SECONDS,
    YOUNG_SECONDS,
    Beat,
    NodeRecord,
    read_kinds,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
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

NODES_MAX = 1000


def beat(database: Database, one: Beat) -> None:
    with database.writing("giving a sign of life") as now:
        database.execute("forget_nodes", {"before": now - rows.microseconds(FORGET_SECONDS)})
        database.execute(
            "beat",
            {
                "id": one.id.bytes,
                "name": one.name,
                "version": one.version,
                "started_at": now - rows.microseconds(one.up_seconds),
                "now": now,
                "phase": one.phase,
                "idle": one.idle,
                "busy": one.busy,
                "retiring": one.retiring,
                "default_count": one.default_count,
                "max_count": one.max_count,
                "pause_seconds": one.pause_seconds,
                "config_generation": one.config_generation,
                "config_hash": one.config_hash,
                "load": one.load,
                "kinds": one.kinds,
            },
        )


def leave(database: Database, node_id: UUID) -> None:
    with database.writing("leaving"):
        database.execute("leave", {"id": node_id.bytes})


def forget_all(database: Database) -> None:
    """For a daemon that starts alone on its file: whoever is on the list is dead."""
    with database.writing("forgetting nodes"):
        database.execute("forget_nodes", {"before": rows.FOREVER})
        database.execute("free_duties")


def nodes(database: Database) -> list[NodeRecord]:
    with database.reading("listing nodes") as now:
        return _nodes(database, now, None, NODES_MAX)


def _nodes(
    database: Database, now: int, young_seconds: float | None, bound: int
) -> list[NodeRecord]:
    young = None if young_seconds is None else rows.microseconds(young_seconds)
    found = database.rows("nodes", {"now": now, "young": young, "bound": bound})
    return [_node(row) for row in found]


def standing(database: Database, job_id: int) -> WhyFacts | None:
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
            now=_when(now),
            paused_at=rows.moment(paused_at),
            paused_by=paused_by,
            in_target=tuple(_target_job(row) for row in in_target),
            behind_before=behind_before,
            parked_before=parked_before,
            line=_line(database, fields, now),
            leased=tuple(_leased(row) for row in leased),
            leased_total=leased[0][-1] if leased else 0,
            nodes=tuple(
                one for one in _nodes(database, now, YOUNG_SECONDS, NODES_BOUND) if one.is_live
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
        job_id, JobState(state), rows.moment(since), _when(run_at), reason, bool(holds)
    )


def _leased(row: rows.Row) -> Leased:
    job_id, kind, node, worker, ran, _ = row
    return Leased(job_id, kind, node, worker, None if ran is None else ran / rows.SECOND)


def _node(row: rows.Row) -> NodeRecord:
    node_id, name, version, started_at, heartbeat_at, *rest = row
    *counts, kinds, silent, pause_seconds, generation, config_hash, load = rest
    fields: list[Any] = [
        UUID(bytes=node_id),
        name,
        version,
        _when(started_at),
        _when(heartbeat_at),
        *counts,
    ]
    fields += [read_kinds(kinds), max(0, silent) / rows.SECOND, pause_seconds]
    fields += [generation, config_hash, load]
    return NodeRecord(*fields)


def _when(at: int) -> datetime:
    found = rows.moment(at)
    assert found is not None  # only None gives None
    return found
