"""Claims: the first due jobs in claim order, of capped kinds only as many as there is room for.
Each function is part of a write transaction, so nobody else claims meanwhile.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from musterd.store.job import Caps, Claim, ClaimRequest
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database

PARKED_MAX = 1000  # in one call
PARKING_ROWS = 50  # read at once beyond what is wanted, once jobs have to be parked
UNPARKED_MAX = 10_000  # in one call, of a kind whose cap is gone


def take(database: Database, request: ClaimRequest, now: int) -> tuple[list[Claim], int]:
    """The claims, and how many jobs were parked to find them."""
    claims: list[Claim] = []
    if request.batch <= 0 or database.rows("queue_state")[0][0] is not None:
        return claims, 0
    if not request.caps:
        _claim(database, request, _first_due(database, request.batch, now), (claims, now))
        return claims, 0
    room = _room(database, request.caps)
    _unpark(database, room, request.batch)
    parked, count = 0, request.batch
    while len(claims) < request.batch and parked < PARKED_MAX:
        fitting, excess = _sorted_out(_first_due(database, count, now), room, request, len(claims))
        for job_id in excess:
            database.execute("park", {"id": job_id})
        _claim(database, request, fitting, (claims, now))
        parked += len(excess)
        if not excess:
            break
        count = max(request.batch - len(claims), PARKING_ROWS)
    return claims, parked


def unpark_uncapped(database: Database, kinds: AbstractSet[str]) -> None:
    """Makes claimable again what was parked for caps that are gone."""
    for (kind,) in database.rows("parked_kinds"):
        if kind in kinds:
            database.execute("unpark", {"kind": kind, "count": UNPARKED_MAX})


def _room(database: Database, caps: Caps) -> dict[str, int]:
    leased: dict[str, int] = dict(database.rows("leased_kinds"))
    return {kind: cap - leased.get(kind, 0) for kind, cap in caps}


def _unpark(database: Database, room: dict[str, int], batch: int) -> None:
    for kind, free in room.items():
        if free > 0:
            database.execute("unpark", {"kind": kind, "count": min(free, batch)})


def _sorted_out(
    due: list[rows.Row], room: dict[str, int], request: ClaimRequest, taken: int
) -> tuple[list[rows.Row], list[int]]:
    """What may be claimed of these jobs, and the ids of those that are to be parked. Takes what it
    lets pass off `room`.
    """
    fitting: list[rows.Row] = []
    excess: list[int] = []
    for row in due:
        job_id, kind = row[:2]
        if taken + len(fitting) == request.batch:
            break
        if kind not in room:
            fitting.append(row)
        elif room[kind] > 0:
            room[kind] -= 1
            fitting.append(row)
        else:
            excess.append(job_id)
    return fitting, excess


def _claim(
    database: Database,
    request: ClaimRequest,
    due: list[rows.Row],
    into: tuple[list[Claim], int],
) -> None:
    claims, now = into
    common = rows.claimed(request, now)
    for place, row in enumerate(due, start=len(claims)):
        job_id, kind, payload, attempt, max_attempts, forgiven, run_at, spent = row
        worker = request.workers[place] if place < len(request.workers) else None
        database.execute("claim", {**common, "id": job_id, "worker": worker})
        fields = (job_id, kind, payload, attempt + 1, max_attempts, forgiven)
        claims.append(rows.claim((*fields, now - run_at, worker, spent), request.token))


def _first_due(database: Database, count: int, now: int) -> list[rows.Row]:
    """The first due jobs in claim order, by priority: what is not yet due costs one probe each."""
    due: list[rows.Row] = []
    for priority, _ in database.execute("due_priorities", {"now": now}):
        wanted = {"priority": priority, "now": now, "count": count - len(due)}
        due += database.rows("due_jobs", wanted)
        if len(due) >= count:
            break
    return due
