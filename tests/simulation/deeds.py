"""Does what a scenario wants, each deed in its time, in a task of its own."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from musterd.store.errors import InputRefused, OutcomeUnknown, StoreError
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action
from tests.simulation.kinds import settings_of
from tests.simulation.process import Process
from tests.simulation.troubles import OTHER_SPELLS
from tests.simulation.users import BAD_PAYLOADS
from tests.simulation.weather import SPELLS, Spell
from tests.simulation.world import World

Values = Mapping[str, Any]
PATIENCE_SECONDS = 5.0  # of a client with one request
TRIES_MAX = 4


async def do(world: World, what: str, values: Values) -> None:
    if what in SPELLS or what in OTHER_SPELLS:
        _spell(world, what, values)
    else:
        await _DOES[what](world, values)


def _spell(world: World, what: str, values: Values) -> None:
    node = values["node"]
    fields = {} if node is None else {"node": node}
    world.recorder.note("fault", what=what, **fields)
    until = world.now() + values["seconds"]
    rng = random.Random(values["seed"])
    world.weather.begin(Spell(what, until, values["chance"], values["delay"], node, rng))


# -- users


async def _enqueue(world: World, values: Values) -> None:
    """A client that knows of no answer asks again only where a key makes that safe."""
    line = world.client(values["client"])
    jobs = [NewJob(**fields) for fields in values["jobs"]]
    keyed = all(job.dedup_key is not None for job in jobs)
    for number in range(TRIES_MAX):
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                made = await line.jobs.enqueue_keyed(jobs)
        except InputRefused:
            return
        except (OutcomeUnknown, trio.TooSlowError):
            if not keyed:
                return
        except StoreError:
            pass
        else:
            world.jobs += [one.id for one in made]
            world.counts["bad_payload"] += sum(job.payload in BAD_PAYLOADS for job in jobs)
            return
        await trio.sleep(0.5 * (number + 1))


async def _control(world: World, values: Values) -> None:
    if world.jobs:
        job = world.jobs[int(values["pick"] * len(world.jobs))]
        await patiently(world, lambda line: line.control.apply(Action(values["what"]), job))


async def _pause_queue(world: World, values: Values) -> None:
    del values
    await patiently(world, lambda line: line.queue.pause("simulation"))


async def _resume_queue(world: World, values: Values) -> None:
    del values
    await patiently(world, lambda line: line.queue.resume())


async def patiently(world: World, ask: Callable[[Any], Awaitable[object]]) -> bool:
    """Gives whether it is known to have been done."""
    try:
        with trio.fail_after(PATIENCE_SECONDS):
            await ask(world.client("operator"))
    except (StoreError, trio.TooSlowError):
        return False
    return True


# -- the store


async def _connections_dropped(world: World, values: Values) -> None:
    await trio.lowlevel.checkpoint()
    process = _process(world, values)
    if process is not None and process.line.under_way:
        world.announce("connections_dropped", node=process.name)
        rng = random.Random(values["seed"])
        process.line.drop(lambda: rng.random() < 0.5)


async def _disk_full(world: World, values: Values) -> None:
    world.announce("disk_full")
    world.store.fill_disk()
    await trio.sleep(values["seconds"])
    world.store.be_well()


async def _read_only(world: World, values: Values) -> None:
    world.announce("read_only")
    world.store.be_read_only()
    await trio.sleep(values["seconds"])
    world.store.be_well()


async def _clock_step(world: World, values: Values) -> None:
    await trio.lowlevel.checkpoint()
    world.announce("clock", who="store", seconds=values["seconds"])
    world.befallen("clock_step")
    world.store.step_seconds += values["seconds"]


async def _failover(world: World, values: Values) -> None:
    """Another server takes over, which has everything."""
    world.announce("failover")
    await _change_over(world, values)


async def _lossy_failover(world: World, values: Values) -> None:
    """Another server takes over, which lacks what was committed last."""
    since, copied = world.recorder.seq, world.store.copy()
    step, timeline = world.store.step_seconds, world.store.timeline
    await trio.sleep(values["back"])
    if world.store.timeline != timeline:
        return  # the copy is that of a server that is no more
    world.announce("lossy_failover", lost_since=since)
    world.recorder.note("fault", what="failover", lost_since=since)
    world.store.restore(copied)
    world.store.step_seconds = step
    await _change_over(world, values)


async def _change_over(world: World, values: Values) -> None:
    world.store.timeline += 1
    for line in [*world.clients.values(), *(one.line for one in world.processes.values())]:
        line.drop(lambda: False)
    if values["away"]:
        until = world.now() + values["away"]
        world.weather.begin(Spell("store_away", until, 1.0, 0.0, None, random.Random(0)))
    await trio.lowlevel.checkpoint()


# -- processes


def _process(world: World, values: Values) -> Process | None:
    process = world.processes.get(values["node"])
    return process if process is not None and process.is_up else None


async def _clock_skew(world: World, values: Values) -> None:
    await trio.lowlevel.checkpoint()
    world.announce("clock_skew", node=values["node"], seconds=values["seconds"])
    world.processes[values["node"]].skew_seconds = values["seconds"]


async def _freeze(world: World, values: Values) -> None:
    process = _process(world, values)
    if process is not None:
        world.befallen("freeze")
        process.freeze()
        await trio.sleep(values["seconds"])
        process.thaw()


async def _suspend(world: World, values: Values) -> None:
    """All machines but the store's sleep, and their clocks that count waits stand still."""
    world.befallen("suspend")
    sleeping = [one for one in world.up() if not one.is_frozen]
    for process in sleeping:
        world.recorder.note("fault", what="freeze", node=process.name)
    world.slept_seconds += values["seconds"]
    for process in sleeping:
        world.recorder.note("fault", what="thaw", node=process.name)
    await trio.lowlevel.checkpoint()


async def _kill(world: World, values: Values) -> None:
    await _take_down(world, values, "kill")


async def _restart(world: World, values: Values) -> None:
    await _take_down(world, values, "restart")


async def _take_down(world: World, values: Values, what: str) -> None:
    process = _process(world, values)
    if process is None:
        return
    world.befallen(what)
    process.kill()
    await process.ended.wait()
    await _start_again(world, process, values["back"])


async def _terminate(world: World, values: Values) -> None:
    process = _process(world, values)
    if process is not None:
        world.befallen("terminate")
        process.terminate()
        await process.ended.wait()
        await _start_again(world, process, values["back"])


async def _terminate_twice(world: World, values: Values) -> None:
    process = _process(world, values)
    if process is None:
        return
    world.befallen("terminate_twice")
    process.terminate()
    await trio.sleep(0.1)
    if process.is_up:
        process.terminate()
        await process.ended.wait()
    await _start_again(world, process, values["back"])


async def _start_again(world: World, process: Process, after_seconds: float | None) -> None:
    """Nobody has done so meanwhile, and there is still time for troubles."""
    if after_seconds is None:
        return
    await trio.sleep(after_seconds)
    if world.processes[process.name] is process and not (world.is_calm or world.is_over):
        world.start(process.name)


async def _reload(world: World, values: Values) -> None:
    process = _process(world, values)
    await trio.lowlevel.checkpoint()
    if process is not None:
        world.befallen("reload")
        most = max(values["max_count"], world.scenario.knobs["workers__default_count"])
        changes = {"workers__poll_interval_ms": values["poll_ms"], "workers__max_count": most}
        process.reload(settings_of(world.scenario.knobs, **changes))


async def _bad_reload(world: World, values: Values) -> None:
    process = _process(world, values)
    await trio.lowlevel.checkpoint()
    if process is not None:
        world.befallen("bad_reload")
        process.reload(None)


_DOES: dict[str, Callable[[World, Values], Awaitable[None]]] = {
    "enqueue": _enqueue,
    "control": _control,
    "pause_queue": _pause_queue,
    "resume_queue": _resume_queue,
    "connections_dropped": _connections_dropped,
    "disk_full": _disk_full,
    "read_only": _read_only,
    "clock_step": _clock_step,
    "failover": _failover,
    "lossy_failover": _lossy_failover,
    "clock_skew": _clock_skew,
    "freeze": _freeze,
    "suspend": _suspend,
    "kill": _kill,
    "restart": _restart,
    "terminate": _terminate,
    "terminate_twice": _terminate_twice,
    "reload": _reload,
    "bad_reload": _bad_reload,
}
