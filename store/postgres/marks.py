"""Where claims begin while the index is full of entries that nobody can remove yet."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from musterd.store.job import ClaimRequest
from musterd.store.postgres.rows import WALKED_MAX, Mark, Rest

ALL_SECONDS = 1.0  # as often all is looked at


@attrs.define
class Marks:
    """Of one engine. As long as anybody holds an old snapshot, the entries of jobs that have gone
    stay in the index, at its very beginning. If a claim had to come by many of them, those of the
    next second begin where the first jobs were. What is put before a mark meanwhile is found after
    that second, as if it had been committed then.

    Only for plain claims: jobs that a limit or a target lets go on have old places.
    """

    _marks: dict[int, Mark] = attrs.field(factory=dict[int, Mark])
    _all_at_local: float = float("-inf")  # when all is looked at next
    _looks_at_all: bool = True  # the claim that was sent last

    def for_claim(self, claim: ClaimRequest, is_plain: bool) -> Sequence[Mark]:
        is_late = trio.current_time() >= self._all_at_local
        self._looks_at_all = is_late or not is_plain or bool(claim.caps)
        return () if self._looks_at_all else tuple(self._marks.values())

    def note(self, rest: Rest) -> None:
        """What the claim that was sent last came by."""
        if self._looks_at_all and rest.walked > WALKED_MAX:
            self._all_at_local = trio.current_time() + ALL_SECONDS
        elif self._looks_at_all:
            self._marks.clear()
            self._all_at_local = float("-inf")
        self._marks |= {mark.priority: mark for mark in rest.firsts}
