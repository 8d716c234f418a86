"""Where claims begin while the index is full of entries that nobody can remove yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import trio

from musterd.store.leases import ClaimRequest
from musterd.store.postgres.claim_rows import ALL, DRAINS_FROM, WALKED_MAX, Mark, Rest, Start

ALL_SECONDS = 0.5  # as often all is looked at, or
ALL_SECONDS_AN_ENTRY = 1e-5  # after twenty times what the last such look has cost, if that is more,
ALL_SECONDS_MAX = 10.0  # but at least so often
OVERDUE_SECONDS = 5.0  # a supervisor looks before; where it does not, a claim does it then
MARKS_MAX = 100  # priorities
LATE_SECONDS = 0.25  # a job may be committed so long after its due time, and be found at once


@attrs.define
class Marks:
    """Of one engine. The entries of jobs that have gone stay in the index, at its very beginning:
    until the next vacuum, and as long as anybody holds an old snapshot. If a claim had to come by
    many of them, or is one of a drain, those of the next moment begin where the first jobs were.

    What is put before a mark meanwhile is found after that moment, as if it had been committed
    then. Where the way is long, the supervisor looks at all of it, so that no claim is late for it.
    What this engine itself has let go on, from behind a target or a limit, lowers the marks.
    In a drain, where the way is short, they are for plain claims only, and end with the first one
    that comes back short.
    """

    _marks: dict[int, Mark] = attrs.field(factory=dict[int, Mark])
    _all_at_local: float = float("-inf")  # when all is looked at next
    _is_long: bool = False  # the way from the first entry on
    _lowered: int = 0

    @property
    def hide_some(self) -> bool:
        """Whether what is let go on may have to lower them."""
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

    def for_a_look(self) -> Start:
        """Of somebody who claims nothing; empty if no claims tell how it stands."""
        if self._is_long and trio.current_time() < self._all_at_local + 2 * OVERDUE_SECONDS:
            return Start(tuple(self._marks.values()), LATE_SECONDS)
        return ALL

    def note(self, rest: Rest, start: Start, claim: ClaimRequest, taken: int) -> None:
        """What a claim that began there came by, and how much it took."""
        if not start.marks:
            self._note_all(rest, claim, taken)
        elif taken < claim.batch and not self._is_long:
            self._forget()
        if not self._is_long and trio.current_time() >= self._all_at_local:
            return
        for first in rest.firsts:
            known = self._marks.get(first.priority)
            if known is None:
                if len(self._marks) < MARKS_MAX:
                    self._marks[first.priority] = first
            # One that was lowered meanwhile stays where it is.
            elif start.lowered == self._lowered or first.is_before(known):
                self._marks[first.priority] = first

    def lower(self, places: Iterable[Mark]) -> int:
        """Jobs at these places may be claimed again; gives how many of them were hidden."""
        hidden = 0
        for place in places:
            mark = self._marks.get(place.priority)
            if mark is not None and place.is_before(mark):
                self._marks[place.priority] = place
                hidden += 1
        self._lowered += hidden > 0
        return hidden

    @property
    def wants_look(self) -> bool:
        """Whether it is time to look at all."""
        return self._is_long and trio.current_time() >= self._all_at_local

    def found(self, firsts: Sequence[Mark], walked: int) -> None:
        """By a look at all that claimed nothing."""
        self._is_long = walked > WALKED_MAX
        if not self._is_long:
            self._forget()
            return
        self._postpone(walked)
        self.lower(firsts)
        for first in firsts[:MARKS_MAX]:
            self._marks.setdefault(first.priority, first)

    def look_at_all(self) -> None:
        """Jobs may be claimed again, and nobody knows their places."""
        self._all_at_local = float("-inf")

    def _note_all(self, rest: Rest, claim: ClaimRequest, taken: int) -> None:
        self._is_long = rest.walked > WALKED_MAX
        if not self._is_long and (claim.batch < DRAINS_FROM or taken < claim.batch):
            self._forget()
            return
        self._postpone(rest.walked)

    def _postpone(self, walked: int) -> None:
        seconds = max(ALL_SECONDS, min(walked * ALL_SECONDS_AN_ENTRY, ALL_SECONDS_MAX))
        self._all_at_local = trio.current_time() + seconds

    def _forget(self) -> None:
        self._marks.clear()
        self._all_at_local = float("-inf")
