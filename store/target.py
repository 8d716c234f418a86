"""What can be seen of a target: whose turn it is, and who waits."""

from __future__ import annotations

import attrs

from musterd.store.job import JobRecord, JobState

BEHIND_BOUND = 10_000  # what stands behind is counted one by one up to here
FIRST_BEHIND = 10


@attrs.frozen
class TargetView:
    """Who has a target, and who waits for it. A job that no claim has met yet is not among them."""

    name: str
    holder: JobRecord  # it is leased, waits for its next attempt, halts the target, or is the next
    reserved: bool  # it is the next, or halts the target, without having been claimed for it
    behind: int  # how many wait, counted up to `BEHIND_BOUND`
    first_behind: tuple[int, ...]  # the first of them, in claim order

    @property
    def halted(self) -> bool:
        return self.holder.state in (JobState.PAUSED, JobState.FAILED)
