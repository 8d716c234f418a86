"""What claims ask and answer: values to parameters, rows to values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from musterd.store.leases import Claim, ClaimRequest
from musterd.store.postgres.arrays import numbers, texts
from musterd.store.postgres.rows import Params, Row

WALKED_MAX = 4_000  # a claim that comes by more entries for nothing says so: a millisecond
REST = 10  # the column in which a claim says what it met beside the jobs
DRAINS_FROM = 100  # jobs in one claim: then it says in any case where the first ones were


class Mark(NamedTuple):
    """A place in the order of claims; as a mark, that of the first claimable job of a priority:
    none was before it.
    """

    priority: int
    run_at: str
    id: int

    def is_before(self, other: Mark) -> bool:
        """Of the same priority."""
        mine, its = datetime.fromisoformat(self.run_at), datetime.fromisoformat(other.run_at)
        return (mine, self.id) < (its, other.id)


class Start(NamedTuple):
    """Where one claim begins; without marks with the first entry. `lowered`: how often marks had
    been lowered by then.
    """

    marks: Sequence[Mark] = ()
    late_seconds: float = 0.0
    lowered: int = 0


ALL = Start()


class Rest(NamedTuple):
    """What a claim says beside the jobs: how many it took out of the way, how many it left to
    others or to another form of the claim, whether no more may be leased; and how many entries of
    the index it walked that led to no job, with the places of the first jobs if those were many.
    `is_limited`: it stopped at a kind with a limit that it did not count.
    """

    aside: int = 0
    busy: int = 0
    is_full: bool = False
    walked: int = 0
    is_limited: bool = False
    firsts: Sequence[Mark] = ()


def beginning(start: Start) -> Params:
    """For what walks along the places of jobs."""
    return {
        "mark_priorities": numbers(mark.priority for mark in start.marks),
        "mark_run_ats": texts(mark.run_at for mark in start.marks),
        "mark_ids": numbers(mark.id for mark in start.marks),
        "late_seconds": start.late_seconds,
    }


def marks_of(text: str) -> list[Mark]:
    return [Mark._make(first) for first in json.loads(text)]


def places(found: Sequence[Row]) -> list[Mark]:
    return [Mark(priority, run_at.isoformat(), job_id) for priority, run_at, job_id in found]


def claim_request(
    request: ClaimRequest, scan: int, start: Start = ALL, stops: Iterable[str] = ()
) -> Params:
    """It takes nothing from the first job of a kind in `stops` on."""
    return {
        "stops": texts(stops),
        **beginning(start),
        "walked_max": WALKED_MAX if request.batch < DRAINS_FROM else -1,
        "batch": request.batch,
        "scan": max(request.batch, scan),
        "workers": numbers(request.workers),
        "token": request.token,
        "node": request.node,
        "common": json.dumps({"node": request.node}),
        "lease_seconds": request.lease_seconds,
        "cap_kinds": texts(kind for kind, _ in request.caps),
        "caps": numbers(cap for _, cap in request.caps),
        "most": request.leased_max,
    }


def claims_and_rest(rows: list[Row], token: UUID) -> tuple[list[Claim], Rest]:
    """The row without an id, if there is one, is the last."""
    rest = _rest(json.loads(rows.pop()[REST])) if rows and rows[-1][0] is None else Rest()
    return claims(rows, token), rest


def _rest(said: dict[str, Any]) -> Rest:
    firsts = [Mark._make(first) for first in said.pop("firsts", None) or ()]
    return Rest(**said, firsts=firsts)


def claims(rows: Iterable[Row], token: UUID) -> list[Claim]:
    make = Claim._make
    return [make((*row[:8], token, *row[8:REST])) for row in rows]
