"""Claims: the first due jobs in claim order, of capped kinds only as many as there is room for, of
a target only the one whose turn it is. Each function is part of a write transaction, so nobody
else claims or decides meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import attrs

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


FOR_NOBODY = ClaimOrder(-1_000_000, 0, 0)
FOR_ALL = ClaimOrder(1_000_000, 0, 0)


class Bar(NamedTuple):
    """How a target stands to its jobs: which has it (reserved: without having been claimed for it),
    and before which place in claim order another one must stand to go first.
    """

    holder: int | None
    is_reserved: bool
    place: ClaimOrder


def bar(database: Database, target: str) -> Bar:
    holder, is_reserved = _holder(database, target)
    leased = _first(database, "leased_of_target", target)
    if leased is not None and leased != holder:  # somebody has changed rows by hand
        database.execute("take_target", {"target": target, "id": leased, "reserved": 0})
        return Bar(leased, False, FOR_NOBODY)
    if holder is None:
        halting = _first(database, "halting", target)
        if halting is None:
            return Bar(None, False, FOR_ALL)
        database.execute("take_target", {"target": target, "id": halting, "reserved": 1})
        return Bar(halting, True, FOR_NOBODY)
    stand = _stand(database, target, holder) if is_reserved else None
    waits = stand is not None and stand[0] is JobState.QUEUED
    return Bar(holder, is_reserved, stand[1] if stand is not None and waits else FOR_NOBODY)


def take_turn(database: Database, target: str, place: ClaimOrder, *, runs: bool) -> int | None:
    """Who has the target now: this due job, if it may; if not it is to stand behind. One that may,
    but does not run yet (its kind's cap), has the target reserved for it.
    """
    holder, is_reserved, before = bar(database, target)
    if holder != place.id and place >= before:
        return holder
    if holder not in (None, place.id):
        stand_behind(database, [holder])
    if holder != place.id or (runs and is_reserved):
        taken = {"target": target, "id": place.id, "reserved": int(not runs)}
        database.execute("take_target", taken)
    return place.id


def stand_behind(database: Database, ids: Sequence[int | None]) -> None:
    """Takes these queued jobs, whose targets others have, out of the claim's way."""
    database.execute("stand_behind", {"ids": json.dumps(ids)})


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
        stand_behind(database, [waits.id])
    if halting is not None:
        database.execute("take_target", {"target": target, "id": halting, "reserved": 1})
        return False
    if first is None:
        database.execute("free_target", {"target": target})
        return False
    database.execute("take_target", {"target": target, "id": first.id, "reserved": 1})
    database.execute("step_forward", {"id": first.id})
    return True


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
ASIDE_ROWS = 200  # read at once beyond what is wanted, once jobs have to be taken out of the way
UNPARKED_MAX = 10_000  # in one call, of a kind whose cap is gone
WHOLE_CHARACTERS = 16_384  # payloads up to this length are read together, longer ones one by one


def take(database: Database, request: ClaimRequest, now: int) -> tuple[list[Claim], int, bool]:
    """The claims, how many jobs were taken out of the way to find them, and whether no more may be
    leased.
    """
    claims: list[Claim] = []
    free = _free(database, request.leased_max)
    wanted = request.batch if free is None else min(request.batch, free)
    if wanted <= 0 or database.rows("queue_state")[0][0] is not None:
        return claims, 0, free == 0
    sieve = _Sieve(database)
    if request.caps:
        sieve.room = _room(database, request.caps)
        _unpark(database, sieve.room, wanted)
    aside, count = 0, wanted
    while len(claims) < wanted and aside < ASIDE_MAX:
        due = _first_due(database, count, now)
        fitting, moved = sieve.sorted_out(due, wanted - len(claims))
        claims += _claim(database, request, fitting, (len(claims), now))
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


@attrs.define
class _Sieve:
    """What one claim lets pass. `room`: how many more of the kinds with caps may be leased; `has`:
    which job has each target that was met.
    """

    database: Database
    room: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    has: dict[str, int | None] = attrs.field(factory=dict[str, "int | None"], init=False)

    def sorted_out(self, due: list[rows.Due], wanted: int) -> tuple[list[rows.Due], int]:
        """What is to be claimed of these jobs, and how many were taken out of the way."""
        if not self.room and not any(job.target for job in due):
            return due[:wanted], 0
        fitting: list[rows.Due] = []
        late: list[int] = []
        parked = 0
        for job in due:
            if len(fitting) == wanted:
                break
            fits = self.room.get(job.kind, 1) > 0
            if job.target is not None and not self._has_turn(job, job.target, fits):
                late.append(job.id)
            elif not fits:
                self.database.execute("park", {"id": job.id})
                parked += 1
            else:
                fitting.append(job)
                if job.kind in self.room:
                    self.room[job.kind] -= 1
        if late:
            stand_behind(self.database, late)
        return fitting, parked + len(late)

    def _has_turn(self, job: rows.Due, target: str, fits: bool) -> bool:
        """Whether its target is this job's. What comes later than another one that was met need not
        be looked into: they come in claim order.
        """
        if target not in self.has or self.has[target] == job.id:
            place = ClaimOrder(-job.priority, job.run_at, job.id)
            self.has[target] = take_turn(self.database, target, place, runs=fits)
        return self.has[target] == job.id


def _claim(
    database: Database, request: ClaimRequest, due: list[rows.Due], at: tuple[int, int]
) -> list[Claim]:
    """`at`: how many were claimed before, and when."""
    if not due:
        return []
    before, now = at
    workers = request.workers[before : before + len(due)]
    taken = {
        "token": request.token.bytes,
        "node": request.node,
        "now": now,
        "lease_expires_at": now + rows.microseconds(request.lease_seconds),
        "ids": json.dumps([job.id for job in due]),
        "seats": len(workers),
        "workers": json.dumps(workers),
    }
    database.execute("claim", taken)
    whole = [job if job.payload is not None else _whole(database, job) for job in due]
    return rows.claims(whole, workers, request.token, now)


def _whole(database: Database, job: rows.Due) -> rows.Due:
    ((payload,),) = database.rows("payload", {"id": job.id})
    return job._replace(payload=payload)


def _first_due(database: Database, count: int, now: int) -> list[rows.Due]:
    """The first due jobs in claim order, by priority: what is not yet due costs one probe each."""
    due: list[rows.Due] = []
    for priority, _ in database.execute("due_priorities", {"now": now}):
        wanted = {"priority": priority, "now": now, "count": count - len(due)}
        ((found,),) = database.rows("due_jobs", {**wanted, "whole": WHOLE_CHARACTERS})
        due += map(rows.Due._make, rows.listed(found))
        if len(due) >= count:
            break
    return due
