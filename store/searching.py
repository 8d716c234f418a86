"""Finds jobs look by look, newest first. A search ends after so many jobs, and says how far it
came: a rare one among ten million is not worth reading them all.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from musterd.store.jobs import JobFilter, JobRecord, Jobs

FIRST_SPAN = 1_000  # of the first look: most searches find what they want among the newest jobs
LOOKED_MAX = 100_000  # jobs in one search


@attrs.frozen
class Reach:
    """How far a search came that ended before it had come by all jobs."""

    looked: int
    made_at: datetime  # when the last job was made that it came by
    before_id: int  # further jobs are found from here on


@attrs.define
class Search:
    """`go_on` is asked before each look but the first. `reach`: None = it has not been ended."""

    jobs: Jobs
    which: JobFilter
    go_on: Callable[[], bool] = lambda: True
    reach: Reach | None = attrs.field(default=None, init=False)
    _looked: int = attrs.field(default=0, init=False)
    _is_done: bool = attrs.field(default=False, init=False)

    async def next(self, wanted: int) -> list[JobRecord]:
        """So many further jobs; fewer if there are no more, or the search ends here."""
        found: list[JobRecord] = []
        while len(found) < wanted and not self._is_done:
            span = self.which.span if self._looked else min(FIRST_SPAN, self.which.span)
            asked = attrs.evolve(self.which, limit=wanted - len(found), span=span)
            look = await self.jobs.look(asked)
            found += look.jobs
            self._looked += look.looked
            if look.through_id is None or look.through_at is None:
                self._is_done = True
                break
            self.which = attrs.evolve(self.which, before_id=look.through_id)
            if len(found) < wanted and (self._looked >= LOOKED_MAX or not self.go_on()):
                self._is_done = True
                self.reach = Reach(self._looked, look.through_at, look.through_id)
        return found
