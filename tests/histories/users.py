"""Who wants jobs done, and acts on them."""

from __future__ import annotations

import random
from typing import Any

import attrs

from musterd.store.control import Selection
from musterd.store.errors import OutcomeUnknown
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from tests.histories.line import Line
from tests.simulation.users import CONTROLS, new_job

QUICKER = 20.0  # than in a simulated cluster, so that a delay ends within the history
TRIES_MAX = 3
BULK = (Action.CANCEL, Action.PAUSE, Action.RESUME)
UNFINISHED = tuple(JobState(one) for one in ("pending", "queued", "assigned", "running", "paused"))


@attrs.define(eq=False)
class User:
    """`jobs`: what all users were told of. Numbers of jobs begin at `first`."""

    line: Line
    rng: random.Random
    jobs: list[int]
    first: int
    made: int = 0

    async def turn(self) -> None:
        dice = self.rng.random()
        if dice < 0.5 or not self.jobs:
            await self.enqueue()
        elif dice < 0.85:
            await self.control()
        elif dice < 0.92:
            await self.control_many()
        elif dice < 0.95:
            await self.line.queue.pause("a user")
        else:
            await self.line.queue.resume()

    async def enqueue(self) -> None:
        """Who knows of no answer asks again where keys make that safe."""
        jobs = [self._wish() for _ in range(self.rng.choice((1, 1, 2, 4)))]
        keyed = all(job.dedup_key is not None for job in jobs)
        for number in range(TRIES_MAX):
            try:
                made = await self.line.jobs.enqueue_keyed(jobs)
            except OutcomeUnknown:
                if not keyed or number == TRIES_MAX - 1:
                    raise
            else:
                self.jobs += [one.id for one in made]
                return

    def _wish(self) -> NewJob:
        self.made += 1
        fields: dict[str, Any] = new_job(self.rng, self.first + self.made, frozenset())
        if "delay_seconds" in fields:
            fields["delay_seconds"] /= QUICKER
        return NewJob(**fields)

    async def control(self) -> None:
        """Mostly on what came last."""
        rng = self.rng
        some = self.jobs[-8:] if rng.random() < 0.7 else self.jobs
        what = rng.choice(("cancel", "pause", "resume", *CONTROLS))
        await self.line.control.apply(Action(what), rng.choice(some))

    async def control_many(self) -> None:
        rng = self.rng
        states = UNFINISHED if rng.random() < 0.5 else (JobState.PAUSED, JobState.FAILED)
        which = Selection(states, targets=rng.choice(((), ("red",))))
        found = await self.line.control.select(which, 0, 1000)
        ids = [one.id for one in found.fitting[:5]]
        if ids:
            await self.line.control.apply_many(rng.choice(BULK), ids, which)
