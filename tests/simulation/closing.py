"""The second half of a simulation: nothing goes wrong any more, all comes to rest, and what the
store then holds is written down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.store.engine import Engine
from musterd.store.event_types import event_object
from musterd.store.jobs import JobFilter
from musterd.store.lifecycle import Action, JobState
from musterd.store.outbox import MessageFilter
from musterd.store.report import job_object
from musterd.store.words import time_text
from tests.simulation.deeds import patiently
from tests.simulation.line import Line
from tests.simulation.operations import payload_fields
from tests.simulation.recording import Recorder
from tests.simulation.world import World

LOOK_SECONDS = 1.0
REST_SECONDS = 3.0
EVERYTHING = 100_000

# What should still happen: work that somebody has in hand, or that nothing holds back.
UNFINISHED = """
select count(*) from job_rows j
where state in ('assigned', 'running') or (
  state = 'queued' and not exists (
    select 1 from job_rows h where h.target = j.target and h.id <> j.id
      and (h.state = 'paused' or (h.state = 'failed' and h.cleared_at is null))
  )
)
"""


async def heal(world: World) -> None:
    """Whatever has been done to the ground is undone; whoever is down is started."""
    world.is_calm = True
    world.weather.clear_up()
    world.store.be_well()
    for process in list(world.processes.values()):
        process.thaw()
    world.recorder.note("fault", what="heal")
    for name in world.scenario.nodes:
        if not world.processes[name].is_up:
            world.start(name)
    while True:
        if await patiently(world, lambda line: line.queue.resume()):
            return
        await trio.sleep(LOOK_SECONDS)


async def come_to_rest(world: World) -> None:
    """Until there is nothing left to do, or for as long as that may take."""
    bounds: Any = world.recorder.header["bounds"]
    deadline = trio.current_time() + bounds["end"] + 2.0
    await _let_go_on(world)
    while trio.current_time() < deadline and world.store.raw(UNFINISHED) != [(0,)]:
        for name in world.scenario.nodes:
            if not world.processes[name].is_up:
                world.start(name)
        await trio.sleep(LOOK_SECONDS)
    await trio.sleep(REST_SECONDS)


async def _let_go_on(world: World) -> None:
    """Half of what is paused is resumed, so that its targets go on too."""
    rng = world.rng("resuming")
    for (job,) in world.store.raw("select id from job_rows where state = 'paused' order by id"):
        if rng.random() < 0.5:
            await patiently(world, partial(_resume, job))


async def _resume(job: int, line: Line) -> None:
    await line.control.apply(Action.RESUME, job)


async def end_all(world: World) -> None:
    """Every node is told to stop."""
    bounds: Any = world.recorder.header["bounds"]
    up = world.up()
    for process in up:
        process.terminate()
    with trio.move_on_after(bounds["drain"] + 1.0):
        for process in up:
            await process.ended.wait()


@attrs.frozen
class Remains:
    """What is written down in the end, and of what. `moment`: what the store's clock says then;
    `name_of`: what receivers know a message by.
    """

    engine: Engine
    recorder: Recorder
    moment: Callable[[], str]
    schedules: Sequence[str] = ()
    name_of: Callable[[str], str] = str


async def write_final(world: World) -> None:
    store, names = world.store, sorted(world.settings.schedules)
    engine, name_of = store.engine, world.receiver.name_of
    await write_down(Remains(engine, world.recorder, store.moment, names, name_of))


async def write_down(of: Remains) -> None:
    """Events, and how all stands; nobody writes to the store any more."""
    engine, recorder = of.engine, of.recorder
    await _write_events(of)
    paused = (await engine.queue.counts()).paused_at is not None
    recorder.body.append({"record": "final", "at": of.moment(), "queue_paused": paused})
    budgets: Any = recorder.header["budgets"]
    for record in sorted(
        await engine.jobs.find(JobFilter(limit=EVERYTHING)), key=lambda one: one.id
    ):
        shown = job_object(record, DEFAULT_TENANT, budgets[""])
        del shown["payload"]
        recorder.final("job", **shown, **payload_fields(record.payload))
    messages = await engine.outbox.messages(MessageFilter(limit=EVERYTHING))
    for one in sorted(messages, key=lambda one: one.id):
        name = of.name_of(one.message_id)
        fields = {"job_id": one.job_id, "type": one.type, "state": one.state}
        recorder.final("message", webhook_id=name, **fields, attempts=one.tries)
    for duty in await engine.duties.duties():
        acquired_at = time_text(duty.acquired_at)
        fields = {"node": duty.node, "hand_overs": duty.hand_overs, "acquired_at": acquired_at}
        recorder.final("duty", duty=duty.duty, **fields)
    for schedule in await engine.schedules.know(of.schedules):
        recorder.final("schedule", name=schedule.name, fired=schedule.fired)
    counts = await engine.queue.counts()
    by_state = {state.value: counts.by_state.get(state, 0) for state in JobState}
    recorder.final("counts", by_state=by_state, enqueued=counts.enqueued_total)


async def _write_events(of: Remains) -> None:
    events, position = of.engine.events, 0
    while True:
        await events.order()
        page = await events.read(position)
        for event in page.events:
            told = json.loads(json.dumps(event_object(event, DEFAULT_TENANT)))
            of.recorder.body.append({"record": "event", "target": event.target, **told})
        position = page.position
        if not page.more:
            return
