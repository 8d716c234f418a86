"""Reads where a job stands: several statements, one snapshot, one round trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import (
    FORGET_SECONDS,
    YOUNG_SECONDS,
    Beat,
    NodeRecord,
    read_kinds,
)
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.numbered import Numbered, send
from musterd.store.standing import (
    LEASED_BOUND,
    LINE_BOUND,
    NODES_BOUND,
    JobStanding,
    Leased,
    Line,
    Standing,
    TargetJob,
)

ID_MAX = 2**63 - 1
SNAPSHOT = b"begin transaction isolation level repeatable read read only"
NODES_MAX = 1000
STATEMENTS = (
    *("why_job", "why_target", "why_before", "why_line"),
    *("why_leased", "nodes", "parked_kinds"),
)

Row = tuple[Any, ...]


async def read_standing(
    conn: TrioConnection, sql: Mapping[str, Numbered], job_id: int
) -> Standing | None:
    """None = there is no such job."""
    if not 0 < job_id <= ID_MAX:
        return None
    bounds = {"why_leased": LEASED_BOUND, "nodes": NODES_BOUND}
    async with conn.pipeline():
        await conn.execute(SNAPSHOT)
        cursors = [
            await send(
                conn,
                sql[name],
                {
                    "id": job_id,
                    "bound": bounds.get(name, LINE_BOUND),
                    "young_seconds": YOUNG_SECONDS,
                },
            )
            for name in STATEMENTS
        ]
        await conn.execute(b"commit")
        found = [await cursor.fetchall() for cursor in cursors]
    return _standing(found)


def beat_params(beat: Beat) -> dict[str, Any]:
    return {
        "id": beat.id,
        "name": beat.name,
        "version": beat.version,
        "up_seconds": beat.up_seconds,
        "phase": beat.phase,
        "idle": beat.idle,
        "busy": beat.busy,
        "retiring": beat.retiring,
        "default_count": beat.default_count,
        "max_count": beat.max_count,
        "pause_seconds": beat.pause_seconds,
        "config_generation": beat.config_generation,
        "config_hash": beat.config_hash,
        "load": beat.load,
        "kinds": beat.kinds,
        "forget_seconds": FORGET_SECONDS,
    }


ALL_NODES = {"young_seconds": None, "bound": NODES_MAX}


def node_record(row: Row) -> NodeRecord:
    *fields, kinds, silent_seconds, pause_seconds, generation, config_hash, load = row
    fields += [read_kinds(kinds), max(0.0, silent_seconds), pause_seconds]
    fields += [generation, config_hash, load]
    return NodeRecord(*fields)


def _standing(found: Sequence[list[Row]]) -> Standing | None:
    jobs, in_target, before, line, leased, nodes, parked_kinds = found
    if not jobs:
        return None
    *fields, last_outcome, now, paused_at, paused_by = jobs[0]
    fields[2] = JobState(fields[2])
    fields.append(None if last_outcome is None else AttemptOutcome(last_outcome))
    ((behind_before, parked_before),) = before
    return Standing(
        job=JobStanding(*fields),
        now=now,
        paused_at=paused_at,
        paused_by=paused_by,
        in_target=tuple(TargetJob(row[0], JobState(row[1]), *row[2:]) for row in in_target),
        behind_before=behind_before,
        parked_before=parked_before,
        line=_line(line),
        leased=tuple(Leased(*row[:-1]) for row in leased),
        leased_total=leased[0][-1] if leased else 0,
        nodes=tuple(one for one in map(node_record, nodes) if one.is_live),
        parked_kinds=frozenset(row[0] for row in parked_kinds),
    )


def _line(found: list[Row]) -> Line:
    before = {row[0]: row[1] for row in found if row[1]}
    every = {row[0]: row[2] for row in found if row[2]}
    of_target, walked = (sum(row[place] for row in found) for place in (3, 4))
    return Line(before, every, of_target, walked < LINE_BOUND, any(row[5] for row in found))
