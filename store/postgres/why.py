"""Reads the facts behind `musterd why`: several statements, one snapshot, one round trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import (
    YOUNG_SECONDS,
)
from musterd.store.postgres.control import ID_MAX
from musterd.store.postgres.nodes import node_record
from musterd.store.postgres.statements import SNAPSHOT, Numbered, Row, send
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

if TYPE_CHECKING:  # what clients load of this needs no Trio
    from musterd.store.postgres.connection import TrioConnection

STATEMENTS = (
    *("why_job", "why_target", "why_before", "why_line"),
    *("why_leased", "nodes", "parked_kinds"),
)


async def read_why_facts(
    conn: TrioConnection, sql: Mapping[str, Numbered], job_id: int
) -> WhyFacts | None:
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
    return _facts(found)


def _facts(found: Sequence[list[Row]]) -> WhyFacts | None:
    jobs, in_target, before, line, leased, nodes, parked_kinds = found
    if not jobs:
        return None
    *fields, last_outcome, now, paused_at, paused_by = jobs[0]
    fields[2] = JobState(fields[2])
    fields.append(None if last_outcome is None else AttemptOutcome(last_outcome))
    ((behind_before, parked_before),) = before
    return WhyFacts(
        job=JobFacts(*fields),
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
