"""Where claims begin while the index is full of entries that nobody can remove yet."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from musterd.store.job import ClaimRequest
from musterd.store.postgres.rows import DRAINS_FROM, WALKED_MAX, Mark, Rest

ALL_SECONDS = 0.5  # as often all is looked at


@attrs.define
class Marks:
    """Of one engine. The entries of jobs that have gone stay in the index, at its very beginning:
    until the next vacuum, and as long as anybody holds an old snapshot. If a claim had to come by
    many of them, or is one of a drain, those of the next moment begin where the first jobs were.
    What is put before a mark meanwhile is found after that moment, as if it had been committed
    then; or once a claim has come back short, which says nothing about what is before the marks.

    Only for plain claims: jobs that a limit or a target lets go on have old places.
    """

    _marks: dict[int, Mark] = attrs.field(factory=dict[int, Mark])
    _all_at_local: float = float("-inf")  # when all is looked at next

    def for_claim(self, claim: ClaimRequest, is_plain: bool) -> Sequence[Mark]:
        """Empty = it is to look at all."""
        is_late = trio.current_time() >= self._all_at_local
        if is_late or not is_plain or claim.caps:
            return ()
        return tuple(self._marks.values())

    def note(self, rest: Rest, marks: Sequence[Mark], claim: ClaimRequest, taken: int) -> None:
        """What a claim that was given these marks came by, and how much it took."""
        is_short = taken < claim.batch
        is_drain = claim.batch >= DRAINS_FROM and not is_short
        if not marks and (rest.walked > WALKED_MAX or is_drain):
            self._all_at_local = trio.current_time() + ALL_SECONDS
        elif not marks or is_short:
            self._marks.clear()
            self._all_at_local = float("-inf")
            return
        self._marks |= {mark.priority: mark for mark in rest.firsts}
