"""Whose turn it is at a target. Each function is part of a write transaction, so nobody else
decides meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from musterd.store.lifecycle import LEASED, JobState
from musterd.store.sqlite.database import Database


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
