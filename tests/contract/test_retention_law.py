"""Whatever happens: only jobs that have ended, long enough ago, are ever deleted, and none of which
somebody is still to be told.
"""

import random

import attrs
import pytest

from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.retention import Ages, RetentionTask
from tests.contract.job_tools import ending, settle, take
from tests.contract.retention_tools import HOUR, C, F, S, message, recounted, told, walk
from tests.contract.rigs import Rig

STEPS = 60
STALE = Ages({S: HOUR, F: HOUR, C: HOUR}, {"kept": {S: HOUR, F: 2 * HOUR, C: None}})
EXPIRED = Ages({S: 2 * HOUR, F: 3 * HOUR, C: HOUR}, {"kept": {S: None, F: 5 * HOUR, C: None}})
ALL = JobFilter(limit=1_000)
STATES = [S, S, F, C, JobState.PAUSED, JobState.QUEUED]


@attrs.define
class History:
    """Does things at random. The rig's own clock is far slower than the time that passes."""

    rig: Rig
    rng: random.Random
    passed_seconds: float = 0.0
    ended: dict[int, float] = attrs.field(factory=dict[int, float])  # when, as time has passed
    gone: set[int] = attrs.field(factory=set[int])

    async def step(self) -> None:
        does = [self.enqueue, self.run, self.run, self.control, self.pass_time, self.retain]
        await self.rng.choice(does)()
        await self.note_ends()

    async def enqueue(self) -> None:
        kind, target = self.rng.choice(["report", "kept"]), self.rng.choice([None, None, "t"])
        key = self.rng.choice([None, "k"])
        await self.rig.engine.jobs.enqueue([NewJob(kind, target=target, dedup_key=key)])

    async def run(self) -> None:
        for claim in await take(self.rig.engine, workers=2):
            state = self.rng.choice(STATES)
            delay = 0.0 if state is JobState.QUEUED else None
            await settle(self.rig.engine, ending(claim, state, delay_seconds=delay))
            if self.rng.random() < 0.2:
                message(self.rig, claim.id, self.rng.choice(["waiting", "delivered", "failed"]))

    async def control(self) -> None:
        known = await self.jobs()
        if known:
            action = self.rng.choice(list(Action))
            await self.rig.engine.control.apply(action, self.rng.choice(sorted(known)))

    async def pass_time(self) -> None:
        seconds = self.rng.choice([0.3, 0.5, 1.0]) * HOUR
        self.rig.pass_time(seconds)
        self.passed_seconds += seconds
        if self.rng.random() < 0.3:
            self.rig.raw("update webhooks set state = 'delivered'")

    async def retain(self) -> None:
        engine, batch = self.rig.engine, self.rng.choice([1, 3, 100])
        await walk(engine, "mark", RetentionTask(STALE, batch))
        before = await self.jobs()
        waiting = {
            row[0] for row in self.rig.raw("select job_id from webhooks where state = 'waiting'")
        }
        await walk(engine, "delete", RetentionTask(EXPIRED, batch))
        left = await self.jobs()
        for job_id in before.keys() - left.keys():
            assert job_id not in waiting
            self.check(before[job_id])
            self.gone.add(job_id)
        assert not [job for job in left.values() if self.is_due(job) and job.id not in waiting]

    def check(self, job: JobRecord) -> None:
        assert job.state in (S, F, C)
        assert job.stale_at is not None
        assert not halts(job)
        age = EXPIRED.of(job.state, job.kind)
        assert age is not None
        assert self.passed_seconds - self.ended[job.id] >= age - 10  # it ended "a second ago"

    def is_due(self, job: JobRecord) -> bool:
        if job.state not in (S, F, C) or halts(job):
            return False
        age = EXPIRED.of(job.state, job.kind)
        stale = STALE.of(job.state, job.kind)
        if age is None or stale is None:
            return False
        return self.passed_seconds - self.ended[job.id] > max(age, stale) + 10

    async def note_ends(self) -> None:
        for job in (await self.jobs()).values():
            if job.state not in (S, F, C):
                self.ended.pop(job.id, None)
            else:
                self.ended.setdefault(job.id, self.passed_seconds)

    async def jobs(self) -> dict[int, JobRecord]:
        return {job.id: job for job in await self.rig.engine.jobs.find(ALL)}


def halts(job: JobRecord) -> bool:
    return job.state is F and job.target is not None and job.cleared_at is None


@pytest.mark.parametrize("seed", range(6))
async def test_only_what_may_go_is_deleted_and_all_of_it(shared: Rig, seed: int) -> None:
    history = History(shared, random.Random(seed))
    for _ in range(STEPS):
        await history.step()
    for _ in range(12):
        await history.pass_time()
    await history.retain()
    counts = (await shared.engine.queue.counts()).by_state
    assert {state.value: number for state, number in counts.items() if number} == recounted(shared)
    deleted = [job_id for job_id, _ in await told(shared.engine, "job.deleted")]
    assert sorted(one for one in deleted if one is not None) == sorted(history.gone)
    assert history.gone
    for table in ("attempts", "job_phases"):
        left = {row[0] for row in shared.raw(f"select job_id from {table}")}
        assert not left & history.gone
