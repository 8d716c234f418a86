"""Many random steps on a few targets, beside a plain model that says which jobs may run."""

import random
from typing import Any

import attrs

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, Settlement
from musterd.store.lifecycle import EFFECTS, Action, JobState
from tests.contract import target_tools as tools
from tests.contract.job_tools import ending, ids, settle
from tests.contract.rigs import Rig

STEPS = {"sqlite": 1000, "postgresql": 400}
TARGETS = ("t", "u", "v", None)
WAITING = (JobState.QUEUED,)
ENDINGS = {
    JobState.SUCCEEDED: 6, JobState.QUEUED: 4, JobState.FAILED: 2, JobState.PAUSED: 2,
    JobState.CANCELED: 1,
}  # fmt: skip
ON_LOST = {
    "requeue": JobState.QUEUED, "fail": JobState.FAILED, "pause": JobState.PAUSED,
}  # fmt: skip


@attrs.define
class Job:
    id: int
    target: str | None
    state: JobState
    due: bool
    cleared: bool = False
    request: Action | None = None

    @property
    def halts(self) -> bool:
        return self.state is JobState.PAUSED or (self.state is JobState.FAILED and not self.cleared)


@attrs.define
class Model:
    """`having`: who has each target: it was claimed, and has not ended since."""

    jobs: dict[int, Job] = attrs.field(factory=dict[int, Job])
    having: dict[str, int] = attrs.field(factory=dict[str, int])

    def may_run(self, places: dict[int, Any]) -> list[int]:
        """In claim order."""
        waiting = [one for one in self.jobs.values() if one.state is JobState.QUEUED and one.due]
        waiting.sort(key=lambda one: places[one.id])
        found: list[int] = []
        closed = {one.target for one in self.jobs.values() if one.halts}
        for job in waiting:
            if job.target is None or self.having.get(job.target) == job.id:
                found.append(job.id)
            elif job.target not in closed and job.target not in self.having:
                found.append(job.id)
                closed.add(job.target)
        return found

    def claimed(self, job_id: int) -> None:
        job = self.jobs[job_id]
        job.state = JobState.RUNNING
        if job.target is not None:
            self.having[job.target] = job_id

    def become(self, job: Job, state: JobState, *, due: bool) -> None:
        job.state, job.due, job.request = state, due, None
        self._let_go(job)

    def act(self, action: Action, job: Job) -> None:
        effect = EFFECTS.get((action, job.state))
        if effect is None or (action is Action.PAUSE and job.request is Action.CANCEL):
            return
        if job.state is JobState.RUNNING:
            job.request = action
            return
        due = job.due or action is Action.RESUME
        job.cleared = action is Action.CLEAR or (job.cleared and action is not Action.RESUME)
        self.become(job, effect, due=due)

    def _let_go(self, job: Job) -> None:
        ended = job.state in (JobState.SUCCEEDED, JobState.CANCELED) or (
            job.state is JobState.FAILED and job.cleared
        )
        if ended and job.target is not None and self.having.get(job.target) == job.id:
            del self.having[job.target]


def requested(job: Job, state: JobState) -> JobState:
    """What a job becomes that somebody wants canceled or paused."""
    if job.request is None or state not in (JobState.QUEUED, JobState.PAUSED):
        return state
    return JobState.CANCELED if job.request is Action.CANCEL else JobState.PAUSED


@attrs.define
class Walk:
    rig: Rig
    rng: random.Random
    model: Model = attrs.field(factory=Model)
    held: dict[int, Claim] = attrs.field(factory=dict[int, Claim])

    async def enqueue(self) -> None:
        new = [
            NewJob(
                "report", target=self.rng.choice(TARGETS), priority=self.rng.choice((0, 0, 1)),
                delay_seconds=self.rng.choice((None, None, 1000.0)),
                hold=self.rng.random() < 0.1,
            )
            for _ in range(self.rng.randint(1, 4))
        ]  # fmt: skip
        for job_id, job in zip(await self.rig.engine.jobs.enqueue(new), new, strict=True):
            state = JobState.PENDING if job.hold else JobState.QUEUED
            self.model.jobs[job_id] = Job(job_id, job.target, state, job.delay_seconds is None)

    async def claim(self) -> None:
        places = {row.id: row.order for row in tools.rows_of(self.rig).values()}
        wanted = self.rng.choice((1, 2, 60))
        expected = self.model.may_run(places)[:wanted]
        claims = await tools.take_all(self.rig.engine, wanted)
        assert sorted(ids(claims)) == sorted(expected)
        for one in claims:
            self.held[one.id] = one
            self.model.claimed(one.id)

    async def settle(self) -> None:
        some = self.rng.sample(list(self.held), min(len(self.held), self.rng.randint(1, 3)))
        ends: list[Settlement] = []
        for job_id in some:
            claim, job = self.held.pop(job_id), self.model.jobs[job_id]
            (state,) = self.rng.choices(list(ENDINGS), list(ENDINGS.values()))
            delay = self.rng.choice((None, 0.0, 1000.0)) if state is JobState.QUEUED else None
            ends.append(ending(claim, state, delay_seconds=delay))
            self.model.become(job, requested(job, state), due=delay != 1000.0)
        assert (await settle(self.rig.engine, *ends)).rejected == frozenset()

    async def control(self) -> None:
        if not self.model.jobs:
            return
        recent = list(self.model.jobs)[-25:]
        job = self.model.jobs[self.rng.choice(recent)]
        actions = [Action.CANCEL, Action.PAUSE, *[Action.RESUME, Action.CLEAR, Action.RELEASE] * 2]
        action = self.rng.choice(actions)
        await self.rig.engine.control.apply(action, job.id)
        self.model.act(action, job)

    async def unhalt(self) -> None:
        """So that the walk does not come to rest."""
        for job in [one for one in self.model.jobs.values() if one.halts]:
            action = self.rng.choice((Action.RESUME, Action.CLEAR, Action.CANCEL))
            await self.rig.engine.control.apply(action, job.id)
            self.model.act(action, job)

    async def reap(self) -> None:
        self.rig.pass_time(2000)
        on_lost = self.rng.choice(list(ON_LOST))
        reaped = await self.rig.engine.leases.reap(tools.rule(on_lost))
        assert sorted(one.id for one in reaped) == sorted(self.held)
        for job in self.model.jobs.values():
            job.due = True
        for job_id in self.held:
            job = self.model.jobs[job_id]
            state = ON_LOST[on_lost]
            if job.request is not None:
                state = JobState.CANCELED if job.request is Action.CANCEL else JobState.PAUSED
            self.model.become(job, state, due=True)
        self.held.clear()

    def compare(self) -> None:
        rows = tools.check(self.rig)
        for job in self.model.jobs.values():
            assert rows[job.id].state == job.state.value
        assert tools.having(rows) == self.model.having


async def test_what_may_run_is_what_the_model_says(rig: Rig) -> None:
    walk = Walk(rig, random.Random(7))
    steps = [walk.enqueue] * 4 + [walk.claim] * 6 + [walk.settle] * 6 + [walk.control] * 5
    steps += [walk.unhalt, walk.reap]
    claimed = 0
    count = STEPS[rig.engine.name]
    for _ in range(count):
        await walk.rng.choice(steps)()
        walk.compare()
        claimed += len(walk.held)
    assert claimed > count // 2  # it did not come to rest
