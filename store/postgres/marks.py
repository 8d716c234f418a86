"""Where claims begin while the index is full of entries that nobody can remove yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import attrs
import trio

from musterd.store.leases import ClaimRequest
from musterd.store.postgres.arrays import numbers, texts
from musterd.store.postgres.statements import Params, Row

WALKED_MAX = 4_000  # entries that a claim may walk for nothing, about a millisecond; more is long
DRAINS_FROM = 100  # a claim of so many jobs is a drain: it keeps marks where the way is short too
# A full walk begins at the first entry. While the way is long it is made once in so many seconds,
# or after twenty times what the last one cost if that is more, but at least once in the maximum.
ALL_SECONDS = 0.5
ALL_SECONDS_AN_ENTRY = 1e-5
ALL_SECONDS_MAX = 10.0
OVERDUE_SECONDS = 5.0  # the supervisor makes the full walk; if it is so late, a claim does
MARKS_MAX = 100  # priorities
LATE_SECONDS = 0.25  # a job committed so long after its due time is still found at once


class Mark(NamedTuple):
    """A place in claim order. A mark is the place of the first claimable job of its priority."""

    priority: int
    run_at: str
    id: int

    def is_before(self, other: Mark) -> bool:
        """Of the same priority."""
        mine, its = datetime.fromisoformat(self.run_at), datetime.fromisoformat(other.run_at)
        return (mine, self.id) < (its, other.id)


class Start(NamedTuple):
    """Where a walk begins; without marks at the first entry. `lowered`: how often marks had been
    lowered by then.
    """

    marks: Sequence[Mark] = ()
    late_seconds: float = 0.0
    lowered: int = 0


FROM_THE_FIRST = Start()


class Findings(NamedTuple):
    """What a claim says beside the jobs: how many it took out of the way, how many it left to
    others or to another form of the claim, whether no more may be leased; and how many entries of
    the index it walked that led to no job, with the places of the first jobs if those were many.
    `is_limited`: it stopped at a kind with a limit that it did not count. `met`: how many stretches
    it locked.
    """

    aside: int = 0
    busy: int = 0
    is_full: bool = False
    walked: int = 0
    is_limited: bool = False
    firsts: Sequence[Mark] = ()
    met: int = 0


@attrs.define
class Marks:
    """The marks of one engine, one for each priority.

    Index entries of finished jobs stay at the beginning of the index until the next vacuum, and as
    long as any session holds an old snapshot. After a claim that walked many of them (the way is
    long), or that is part of a drain, the claims of the next moment begin where it found the first
    jobs.

    A job that is put before a mark meanwhile is found after that moment, as if it had been
    committed then. While the way is long, the supervisor makes the full walks, so that no claim is
    slowed by one. Jobs that this engine itself makes claimable again, from behind a target or a
    limit, lower the marks. In a drain with a short way, marks are for plain claims only, and end
    with the first claim that comes back short.
    """

    _marks: dict[int, Mark] = attrs.field(factory=dict[int, Mark])
    _all_at_local: float = float("-inf")  # when the next full walk is due
    _is_long: bool = False  # the way from the first entry to the first job
    _lowered: int = 0

    @property
    def hide_jobs(self) -> bool:
        """Whether claimable jobs may be before a mark."""
        return self._is_long

    def for_claim(self, claim: ClaimRequest, is_plain: bool) -> Start:
        now = trio.current_time()
        if now >= self._all_at_local + (OVERDUE_SECONDS if self._is_long else 0.0):
            if self._is_long:
                self._all_at_local = now  # the others need not wait for this one
            return Start(lowered=self._lowered)
        if not self._is_long and (claim.caps or not is_plain):
            return Start(lowered=self._lowered)
        late_seconds = LATE_SECONDS if self._is_long else 0.0
        return Start(tuple(self._marks.values()), late_seconds, self._lowered)

    def for_walk(self) -> Start:
        """For a walk that claims nothing; without marks if no claim has kept them up to date."""
        if self._is_long and trio.current_time() < self._all_at_local + 2 * OVERDUE_SECONDS:
            return Start(tuple(self._marks.values()), LATE_SECONDS)
        return FROM_THE_FIRST

    def note(self, findings: Findings, start: Start, claim: ClaimRequest, taken: int) -> None:
        """What a claim that began there has met, and how many jobs it took."""
        if not start.marks:
            self._note_all(findings, claim, taken)
        elif taken < claim.batch and not self._is_long:
            self._forget()
        if not self._is_long and trio.current_time() >= self._all_at_local:
            return
        for first in findings.firsts:
            known = self._marks.get(first.priority)
            if known is None:
                if len(self._marks) < MARKS_MAX:
                    self._marks[first.priority] = first
            # One that was lowered meanwhile stays where it is.
            elif start.lowered == self._lowered or first.is_before(known):
                self._marks[first.priority] = first

    def lower(self, places: Iterable[Mark]) -> int:
        """Jobs at these places became claimable again; returns how many of them were hidden."""
        hidden = 0
        for place in places:
            mark = self._marks.get(place.priority)
            if mark is not None and place.is_before(mark):
                self._marks[place.priority] = place
                hidden += 1
        self._lowered += hidden > 0
        return hidden

    @property
    def wants_full_walk(self) -> bool:
        """Whether the next full walk is due."""
        return self._is_long and trio.current_time() >= self._all_at_local

    def note_full_walk(self, firsts: Sequence[Mark], walked: int) -> None:
        """What a full walk that claimed nothing has found."""
        self._is_long = walked > WALKED_MAX
        if not self._is_long:
            self._forget()
            return
        self._postpone(walked)
        self.lower(firsts)
        for first in firsts[:MARKS_MAX]:
            self._marks.setdefault(first.priority, first)

    def walk_all(self) -> None:
        """Jobs became claimable again at unknown places: the next walk is a full one."""
        self._all_at_local = float("-inf")

    def _note_all(self, findings: Findings, claim: ClaimRequest, taken: int) -> None:
        self._is_long = findings.walked > WALKED_MAX
        if not self._is_long and (claim.batch < DRAINS_FROM or taken < claim.batch):
            self._forget()
            return
        self._postpone(findings.walked)

    def _postpone(self, walked: int) -> None:
        seconds = max(ALL_SECONDS, min(walked * ALL_SECONDS_AN_ENTRY, ALL_SECONDS_MAX))
        self._all_at_local = trio.current_time() + seconds

    def _forget(self) -> None:
        self._marks.clear()
        self._all_at_local = float("-inf")


def start_params(start: Start) -> Params:
    """For the statements that begin at marks."""
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
