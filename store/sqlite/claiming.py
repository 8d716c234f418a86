"""Claims: the first due jobs in claim order, of capped kinds only as many as there is room for, of
a target only the one whose turn it is. Each function is part of a write transaction, so nobody
else claims or decides meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from musterd.store.leases import Caps, Claim, ClaimRequest
from musterd.store.lifecycle import LEASED, JobState
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.job_events import JobEvents, record_claims


class ClaimOrder(NamedTuple):
    """In claim order, the first smallest."""

    lowness: int  # priority, the other way round
    run_at: int
    id: int


def take_turn(database: Database, target: str, place: ClaimOrder, *, runs: bool) -> bool:
    """Whether this due job may have its target, which it then has; else it stands behind. One that
    may, but does not run yet (its kind's cap), has the target reserved for it.
    """
    wanted = {"target": target, "id": place.id}
    holder, reserved = _holder(database, target)
    if not _is_next(database, target, place, (holder, reserved)):
        database.execute("stand_behind", wanted)
        return False
    if holder not in (None, place.id):
        database.execute("stand_behind", {"id": holder})
    if runs and (reserved or holder != place.id):
        database.execute("take_target", {**wanted, "reserved": 0})
    elif holder != place.id:
        database.execute("take_target", {**wanted, "reserved": 1})
    return True


def hand_over(database: Database, target: str) -> bool:
    """Passes the target on, if the job that has it has ended. The first that halts it comes next,
    else the first in claim order of those that wait; if there is none the target is free. Says
    whether a job became claimable. May be called at any time.
    """
    holder, reserved = _holder(database, target)
    if holder is None:
        return False
    stand = _stand(database, target, holder)
    if stand is not None and (not reserved or stand[0] in LEASED):
        return False
    halting = _first(database, "halting", target)
    waits = stand[1] if stand is not None and stand[0] is JobState.QUEUED else None
    first = None if halting is not None else _first_behind(database, target)
    if waits is not None:
        if halting is None and (first is None or waits < first):
            return False
        database.execute("stand_behind", {"id": waits.id})
    if halting is not None:
        database.execute("take_target", {"target": target, "id": halting, "reserved": 1})
        return False
    if first is None:
        database.execute("free_target", {"target": target})
        return False
    database.execute("take_target", {"target": target, "id": first.id, "reserved": 1})
    database.execute("step_forward", {"id": first.id})
    return True


def _is_next(
    database: Database, target: str, place: ClaimOrder, holding: tuple[int | None, bool]
) -> bool:
    holder, reserved = holding
    leased = _first(database, "leased_of_target", target)
    if leased is not None and leased != holder:  # somebody has changed rows by hand
        database.execute("take_target", {"target": target, "id": leased, "reserved": 0})
        return False
    if holder is None:
        halting = _first(database, "halting", target)
        if halting is not None:
            database.execute("take_target", {"target": target, "id": halting, "reserved": 1})
        return halting is None
    if holder == place.id:
        return True
    stand = _stand(database, target, holder) if reserved else None
    return stand is not None and stand[0] is JobState.QUEUED and place < stand[1]


def _holder(database: Database, target: str) -> tuple[int | None, bool]:
    found = database.rows("target_holder", {"target": target})
    return (found[0][0], bool(found[0][1])) if found else (None, False)


def _stand(database: Database, target: str, job_id: int) -> tuple[JobState, ClaimOrder] | None:
    """How the holder stands; None = it has ended, or is gone."""
    found = database.rows("turn_of", {"target": target, "id": job_id})
    if not found:
        return None
    state, cleared_at, priority, run_at = found[0]
    if state in (JobState.SUCCEEDED, JobState.CANCELED) or cleared_at is not None:
        return None
    return JobState(state), ClaimOrder(-priority, run_at, job_id)


def _first(database: Database, name: str, target: str) -> int | None:
    found = database.rows(name, {"target": target})
    return found[0][0] if found else None


def _first_behind(database: Database, target: str) -> ClaimOrder | None:
    found = database.rows("behind", {"target": target, "count": 1})
    if not found:
        return None
    job_id, priority, run_at = found[0]
    return ClaimOrder(-priority, run_at, job_id)


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
    (job_id, kind), (run_at, _, priority, target) = row[:2], row[6:10]
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
        job_id, kind, payload, attempt, max_attempts, forgiven, run_at, spent, _, *rest = row
        worker = request.workers[place] if place < len(request.workers) else None
        taken.append((job_id, worker))
        fields = (job_id, kind, payload, attempt + 1, max_attempts, forgiven)
        claims.append(rows.claim((*fields, now - run_at, worker, spent, *rest), request.token))
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
