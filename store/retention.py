"""What becomes of jobs after their end: they go stale, and are deleted, each when its time has
come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

import attrs
import trio

from musterd.store.control import Deletion
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import JobState
from musterd.store.threads import in_thread

T = TypeVar("T")

STALE, DELETED = "job.stale", "job.deleted"
MESSAGES_KEPT_SECONDS = 7 * 86_400.0  # messages of deleted jobs, after they were sent or given up


class JobPosition(NamedTuple):
    """Where a walk has come: behind this job. Jobs are walked through kind by kind, in the order of
    their ends.
    """

    state: str
    kind: str
    finished_at: datetime
    id: int


@attrs.frozen
class Ages:
    """From how many seconds after its end a job's time has come; None = never. `by_kind` names the
    kinds that have ages of their own, each for all three states.
    """

    by_state: Mapping[JobState, float | None]
    by_kind: Mapping[str, Mapping[JobState, float | None]]

    def of(self, state: JobState, kind: str) -> float | None:
        return self.by_kind.get(kind, self.by_state)[state]

    def later(self, seconds: float) -> Ages:
        """Each by so much."""

        def of(ages: Mapping[JobState, float | None]) -> dict[JobState, float | None]:
            return {state: None if age is None else age + seconds for state, age in ages.items()}

        return Ages(of(self.by_state), {kind: of(ages) for kind, ages in self.by_kind.items()})

    @property
    def longest(self) -> float:
        """0 = no job's time ever comes."""
        given = [self.by_state, *self.by_kind.values()]
        return max((age or 0.0 for each in given for age in each.values()), default=0.0)

    @property
    def shortest(self) -> float | None:
        """None = no job's time ever comes."""
        given = [self.by_state, *self.by_kind.values()]
        return min(
            (age for each in given for age in each.values() if age is not None), default=None
        )


class Kept(NamedTuple):
    """What is kept of a job that is deleted; each is JSON text."""

    archived: str | None  # goes into the archive that is a table
    sent: str | None  # goes to the hook


# Is handed the jobs of a batch before they are deleted, in a thread, and blocks. What it gives is
# in their order. What it raises ends the call: none of them is deleted. A thread that does not come
# back, because a disk hangs, is left behind when the call is cancelled: what it writes later is
# written again with the next batch.
Keeper = Callable[[Sequence[JobRecord]], Sequence[Kept]]


@attrs.frozen
class RetentionTask:
    """What is done with those whose time has come. `hook`: where a message about each goes."""

    ages: Ages
    batch: int
    hook: str | None = None  # https://..., or python:module:function
    keeper: Keeper | None = None  # for deletions


_threads = trio.CapacityLimiter(2)  # those that hang are not joined by ever more


async def apart(work: Callable[[], T]) -> T:
    """For what a keeper does."""
    return await in_thread(work, abandon_on_cancel=True, limiter=_threads)


class BatchResult(NamedTuple):
    """How far one batch came. `further`: where the next one begins; None = that was all."""

    done: int
    further: JobPosition | None


@attrs.frozen
class DeleteRequest:
    """Somebody wants a job deleted before its time. `hook` and `keeper` as of a `RetentionTask`."""

    by: str
    hook: str | None = None
    keeper: Keeper | None = None


class Retention(Protocol):
    """The jobs of one store that have ended. Errors as for `Engine`.

    Passed by is a job with a message that waits to be sent, a failed one that halts its target, and
    one that somebody else is writing to. Several may walk at the same time.
    """

    async def mark(self, task: RetentionTask, after: JobPosition | None) -> BatchResult:
        """Marks jobs as stale, records events, and makes a message of each for the hook: all in one
        transaction.
        """
        ...

    async def delete(self, task: RetentionTask, after: JobPosition | None) -> BatchResult:
        """Deletes stale jobs and what belongs to them alone; records events; makes messages for the
        hook, and keeps what the keeper gives: all in one transaction.
        """
        ...

    async def delete_one(self, job_id: int, request: DeleteRequest) -> Deletion:
        """Deletes an ended job, stale or not, as `delete` does. What would be passed by there
        stays, and the answer says why.
        """
        ...

    async def forget_leftovers(self, batch: int) -> int:
        """Deletes keys that have run out, and messages of deleted jobs that were sent long ago, at
        most so many of each; gives how many.
        """
        ...


def rules_of(ages: Ages) -> list[tuple[str, str | None, float | None]]:
    """The ages in one list: state, kind (None = all others), seconds."""
    general = [(state.value, None, age) for state, age in ages.by_state.items()]
    own = [
        (state.value, kind, age)
        for kind, each in sorted(ages.by_kind.items())
        for state, age in each.items()
    ]
    return [*general, *own]
