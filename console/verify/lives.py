"""The lives of jobs, judged event by event. Pure.

After a violation the job is taken for what the event says it is: one deed is told once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from musterd.console.verify.docket import Docket
from musterd.console.verify.life import Life, packed, packed_attempt, packed_state, unpacked
from musterd.console.verify.nodes import Nodes
from musterd.console.verify.rules import Rule
from musterd.console.verify.steps import Judged, taken
from musterd.console.verify.targets import Targets
from musterd.store.events import Event
from musterd.store.job import JobState

RESTS = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED})
_SAYS_NOTHING = frozenset({"job.webhook_delivered", "job.webhook_failed"})
Seen = tuple[JobState | None, int | None]  # None: there is no such job; the log does not say


class Lives:
    """Living jobs as objects, those that rest as numbers, those that are deleted not at all."""

    def __init__(self, docket: Docket) -> None:
        self._docket = docket
        self._targets, self._nodes = Targets(docket), Nodes(docket)
        self._living: dict[int, Life] = {}
        self._resting: dict[int, int] = {}
        self._watched: dict[int, list[Seen]] | None = None
        self.is_whole = True  # whatever is told of was made before the eyes of this judge

    def take(self, event: Event) -> None:
        job_id = event.job_id
        if job_id is None:
            self._nodes.told(event)
            return
        if self._watched is not None:
            self._watched.setdefault(job_id, [self.seen(job_id)])
        life = self._living.get(job_id) or self._found(event, job_id)
        if life is not None:
            step = taken(event, life, self._docket)
            if event.target is not None:
                life.target = event.target
            self._apply(event, life, job_id, step)
            if self._watched is not None:
                self._watched[job_id].append(self.seen(job_id))

    def forget(self) -> None:
        """Something is missing in the log: what is known may no longer be true."""
        self._living.clear()
        self._resting.clear()
        self._targets.forget()
        self._nodes.forget()
        self.is_whole = False

    def seen(self, job_id: int) -> Seen:
        """What a job is now, as far as the log tells."""
        life = self._living.get(job_id)
        if life is not None:
            return life.state, life.attempt
        number = self._resting.get(job_id)
        return (None, 0) if number is None else (packed_state(number), packed_attempt(number))

    def watch(self) -> Mapping[int, Sequence[Seen]]:
        """All that jobs have been from now on, by job, until this is called again."""
        self._watched = {}
        return self._watched

    def unwatch(self) -> None:
        self._watched = None

    def ids(self) -> list[int]:
        return sorted((*self._living, *self._resting))

    def position_of(self, job_id: int) -> int | None:
        life = self._living.get(job_id)
        if life is not None:
            return life.last
        number = self._resting.get(job_id)
        return None if number is None else unpacked(number).last

    def totals(self) -> Counter[JobState]:
        found = Counter(life.state for life in self._living.values() if life.state is not None)
        found.update(packed_state(number) for number in self._resting.values())
        return found

    def _found(self, event: Event, job_id: int) -> Life | None:
        """The life that rests, or begins; None = it is one of which nothing more is to be said."""
        number = self._resting.get(job_id)
        if number is not None:
            life = unpacked(number)
        elif event.type == "job.enqueued":
            life = Life(None, 0, event.id)
            life.is_known = True
            self._docket.cases[Rule.MADE] += 1
        elif event.type in _SAYS_NOTHING:
            return None  # messages may outlive their job
        else:
            life = self._stranger(event, job_id)
        self._living[job_id] = life
        return life

    def _stranger(self, event: Event, job_id: int) -> Life:
        if self.is_whole:
            story = (
                f"{event.type} is told of job {job_id}, which nobody has made, or which is deleted"
            )
            self._docket.accuse(Rule.MADE, job_id, (event.id,), story)
        life = Life(None, None, event.id)
        life.has_ended = life.is_stale = True  # for all one knows
        return life

    def _apply(self, event: Event, life: Life, job_id: int, step: Judged) -> None:
        if step is Judged.DELETED:
            life.is_cleared = True
            if life.target is not None:
                self._targets.changed(event, life.target, life, job_id)
            del self._living[job_id]
            self._resting.pop(job_id, None)
            return
        if step is Judged.CLAIMED:
            if life.node is not None:
                self._nodes.claimed(event, life.node)
            if life.target is not None:
                self._targets.claimed(event, life.target, job_id, is_known=life.is_known)
                life.is_known = True
        elif life.target is not None and step is Judged.CHANGED:
            self._targets.changed(event, life.target, life, job_id)
        if life.state in RESTS:
            self._rest(life, job_id)
        elif self._resting:
            self._resting.pop(job_id, None)

    def _rest(self, life: Life, job_id: int) -> None:
        number = packed(life)
        if number is not None:
            self._resting[job_id] = number
            del self._living[job_id]
