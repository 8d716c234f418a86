"""Claims: the first due jobs in claim order, of capped kinds only as many as there is room for, of
a target only the one whose turn it is. Each function is part of a write transaction, so nobody else
claims meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet

from musterd.store.leases import Caps, Claim, ClaimRequest
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.job_events import JobEvents, record_claims
from musterd.store.sqlite.targets import ClaimOrder, take_turn

ASIDE_MAX = 1000  # parked or put behind in one call
ASIDE_ROWS = 50  # read at once beyond what is wanted, once jobs have to be taken out of the way
UNPARKED_MAX = 10_000  # in one call, of a kind whose cap is gone


def take(database: Database, request: ClaimRequest, now: int) -> tuple[list[Claim], int, bool]:
    """The claims, how many jobs were taken out of the way to find them, and whether no more may be
    leased.
    """
    claims: list[Claim] = []
    free = _free(database, request.leased_max)
    wanted = request.batch if free is None else min(request.batch, free)
    if wanted <= 0 or database.rows("queue_state")[0][0] is not None:
        return claims, 0, free == 0
    room: dict[str, int] = {}
    if request.caps:
        room = _room(database, request.caps)
        _unpark(database, room, wanted)
    aside, count = 0, wanted
    while len(claims) < wanted and aside < ASIDE_MAX:
        due = _first_due(database, count, now)
        fitting, moved = _sorted_out(database, due, room, wanted - len(claims))
        _claim(database, request, fitting, (claims, now))
        aside += moved
        if not moved:
            break
        count = max(wanted - len(claims), ASIDE_ROWS)
    record_claims(JobEvents(database, now), claims, request.node)
    return claims, aside, len(claims) == free


def unpark_uncapped(database: Database, kinds: AbstractSet[str]) -> None:
    """Makes claimable again what was parked for caps that are gone."""
    for (kind,) in database.rows("parked_kinds"):
        if kind in kinds:
            database.execute("unpark", {"kind": kind, "count": UNPARKED_MAX})


def _free(database: Database, leased_max: int | None) -> int | None:
    """How many more jobs may be leased; None = as many as there are."""
    if leased_max is None:
        return None
    leased: int = sum(number for _, number in database.rows("leased_kinds"))
    return max(0, leased_max - leased)


def _room(database: Database, caps: Caps) -> dict[str, int]:
    leased: dict[str, int] = dict(database.rows("leased_kinds"))
    return {kind: cap - leased.get(kind, 0) for kind, cap in caps}


def _unpark(database: Database, room: dict[str, int], batch: int) -> None:
    for kind, free in room.items():
        if free > 0:
            database.execute("unpark", {"kind": kind, "count": min(free, batch)})


def _sorted_out(
    database: Database, due: list[rows.Row], room: dict[str, int], wanted: int
) -> tuple[list[rows.Row], int]:
    """What is to be claimed of these jobs, and how many were taken out of the way. Takes what it
    lets pass off `room`.
    """
    fitting: list[rows.Row] = []
    moved = 0
    for row in due:
        if len(fitting) == wanted:
            break
        if _passes(database, row, room):
            fitting.append(row)
        else:
            moved += 1
    return fitting, moved


def _passes(database: Database, row: rows.Row, room: dict[str, int]) -> bool:
    """Whether this job may be claimed now; if not it is parked, or stands behind."""
    (job_id, kind), (run_at, _, priority, target) = row[:2], row[6:]
    fits = room.get(kind, 1) > 0
    if target is not None and not take_turn(
        database, target, ClaimOrder(-priority, run_at, job_id), runs=fits
    ):
        return False
    if not fits:
        database.execute("park", {"id": job_id})
    elif kind in room:
        room[kind] -= 1
    return fits


def _claim(
    database: Database,
    request: ClaimRequest,
    due: list[rows.Row],
    into: tuple[list[Claim], int],
) -> None:
    claims, now = into
    taken: list[tuple[int, int | None]] = []
    for place, row in enumerate(due, start=len(claims)):
        job_id, kind, payload, attempt, max_attempts, forgiven, run_at, spent, _, target = row
        worker = request.workers[place] if place < len(request.workers) else None
        taken.append((job_id, worker))
        fields = (job_id, kind, payload, attempt + 1, max_attempts, forgiven)
        claims.append(rows.claim((*fields, now - run_at, worker, spent, target), request.token))
    if taken:
        database.execute("claim", {**rows.claimed(request, now), "taken": json.dumps(taken)})


def _first_due(database: Database, count: int, now: int) -> list[rows.Row]:
    """The first due jobs in claim order, by priority: what is not yet due costs one probe each."""
    due: list[rows.Row] = []
    for priority, _ in database.execute("due_priorities", {"now": now}):
        wanted = {"priority": priority, "now": now, "count": count - len(due)}
        due += database.rows("due_jobs", wanted)
        if len(due) >= count:
            break
    return due
