"""The law of events: the state that was last told of a job is the one it is in."""

import random

import attrs

from musterd.store.events import Event
from musterd.store.lifecycle import INITIAL, TRANSITIONS, JobState
from tests.contract import target_tools as tools
from tests.contract.event_tools import follow, ordered, state_told
from tests.contract.rigs import Rig
from tests.contract.test_targets_model import Walk

STEPS = {"sqlite": 400, "postgresql": 150}


@attrs.define
class Listener:
    """What a reader knows who has heard of everything."""

    position: int = 0
    states: dict[int, JobState] = attrs.field(factory=dict[int, JobState])
    types: set[str] = attrs.field(factory=set[str])

    def hear(self, event: Event) -> None:
        self.types.add(event.type)
        state, job_id = state_told(event), event.job_id
        if state is None or job_id is None:
            return
        before = self.states.get(job_id)
        assert state in INITIAL if before is None else (before, state) in TRANSITIONS, (
            before,
            event,
        )
        assert before is not state, f"told twice: {event}"
        self.states[job_id] = state


async def test_the_last_told_state_is_the_state(rig: Rig) -> None:
    walk, listener = Walk(rig, random.Random(11)), Listener()
    steps = [walk.enqueue] * 4 + [walk.claim] * 6 + [walk.settle] * 6 + [walk.control] * 5
    steps += [walk.unhalt, walk.reap]
    for _ in range(STEPS[rig.engine.name]):
        await walk.rng.choice(steps)()
        await ordered(rig.engine)
        events, listener.position = await follow(rig.engine, listener.position)
        for event in events:
            listener.hear(event)
        rows = tools.rows_of(rig)
        assert listener.states == {row.id: JobState(row.state) for row in rows.values()}
    assert listener.types >= {
        *("job.enqueued", "job.released", "job.started", "job.retrying", "job.requeued"),
        *("job.succeeded", "job.failed", "job.canceled", "job.paused", "job.resumed"),
        "job.cleared",
    }
