"""A node takes another configuration over while it runs, whole or not at all."""

from collections.abc import Callable, Collection
from typing import Any

import attrs
import pytest
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.changes import Changes
from musterd.config.faults import ConfigError, Fault
from musterd.config.settings import Settings
from musterd.manager.reload.outcome import (
    ReloadOutcome,
    ReloadRefused,
    ReloadTaken,
    ReloadUnavailable,
)
from musterd.manager.reload.reloader import REQUESTS_MAX
from musterd.store.errors import StoreMisconfigured
from musterd.store.events import EventFilter
from tests.support.reloading import reload, reloader_of, running
from tests.support.stage import Node, Stage, kind, settings_with, until

# -- whole or not at all


def _fault() -> ConfigError:
    return ConfigError([Fault("x.toml", 1, "a.b", "nothing", "something")])


def no_files(_node: Node) -> tuple[Settings, Catalog]:
    raise _fault()


def broken_kind(node: Node) -> tuple[Settings, Catalog]:
    broken = attrs.evolve(kind("fresh"), broken="x.toml:7: kinds.fresh.python: cannot import it")
    return settings_with(workers__max_count=9), Catalog(
        [*reloader_of(node).catalog.values(), broken]
    )


def unsafe_mixture(node: Node) -> tuple[Settings, Catalog]:
    """The address stays until a restart, the token would go at once."""
    return settings_with(workers__max_count=9), reloader_of(node).catalog


def tenant_without_a_store(node: Node) -> tuple[Settings, Catalog]:
    return settings_with(workers__max_count=9, tenants__acme__schema="x"), reloader_of(node).catalog


@pytest.mark.parametrize("attempt", [no_files, broken_kind, unsafe_mixture, tenant_without_a_store])
async def test_what_goes_wrong_changes_nothing_and_a_good_one_heals_it(
    stage: Stage, attempt: Callable[[Node], tuple[Settings, Catalog]]
) -> None:
    open_to_all = {"http__listen": "0.0.0.0:1", "http__token": "sixteen--letters"}
    node = await stage.start(**open_to_all)
    reloader = reloader_of(node)

    def no_store(_name: str, _settings: Settings) -> Any:
        raise StoreMisconfigured("there is no such server")

    make, reloader.make = reloader.make, no_store
    before = (reloader.settings.now, reloader.catalog, reloader.configured)
    outcome = await reloader.reload(lambda: attempt(node))
    assert isinstance(outcome, ReloadRefused)
    assert outcome.faults
    assert (reloader.settings.now, reloader.catalog, reloader.configured) == before
    assert (node.metric("config_reload_success"), node.metric("config_generation")) == (0, 1)
    assert len(node.events.named("configuration fault")) == len(outcome.faults)
    assert set(node.daemon.tenancies) == {"default"}
    reloader.make = make
    good = settings_with(workers__max_count=9, **open_to_all)
    healed = await reloader.reload(lambda: (good, reloader.catalog))
    assert isinstance(healed, ReloadTaken)
    assert (node.metric("config_reload_success"), node.metric("config_generation")) == (1, 2)
    told = [one.data for one in await _reloads(stage)]
    assert [(one["result"], one["generation"]) for one in told] == [("refused", 1), ("applied", 2)]


async def _reloads(stage: Stage) -> list[Any]:
    await trio.sleep(5)
    log = stage.store.engine.events
    await log.order()
    return list((await log.read(0, EventFilter(types=frozenset({"config.reloaded"})))).events)


async def test_a_secret_that_cannot_be_read_changes_nothing(stage: Stage) -> None:
    node = await stage.start()
    reloader, used = reloader_of(node), list[str]()

    def unreadable(_found: Changes) -> Callable[[], Collection[str]]:
        raise _fault()

    def readable(_found: Changes) -> Callable[[], Collection[str]]:
        def use() -> Collection[str]:
            used.append("used")
            return ("http.token_file",)

        return use

    reloader.plan = attrs.evolve(reloader.plan, read_secrets=unreadable)
    assert isinstance(await reload(node, workers__max_count=9), ReloadRefused)
    assert reloader.settings.now.workers.max_count == 8
    reloader.plan = attrs.evolve(reloader.plan, read_secrets=readable)
    outcome = await reload(node)
    assert isinstance(outcome, ReloadTaken)
    assert (outcome.result, outcome.changes.live, used) == (
        "applied", ("http.token_file",), ["used"],
    )  # fmt: skip


async def test_a_kind_that_was_broken_here_before_holds_nothing_up(stage: Stage) -> None:
    stage.kinds["elsewhere"] = attrs.evolve(kind("elsewhere"), broken="no such program")
    node = await stage.start()
    assert isinstance(await reload(node, workers__max_count=9), ReloadTaken)
    assert [one["kind"] for one in node.events.named("kind broken")] == ["elsewhere"]


# -- who asks, and when


# Files are read in a thread, in real time; the clock of the tests may run this far ahead of it.
AHEAD_SECONDS = 3600


def wait_for_files(node: Node, seconds: float) -> list[float]:
    """Makes this node's files take so long to read. Gives when they began to be read, so far."""
    reloader = reloader_of(node)
    begun: list[float] = []

    def read() -> tuple[Settings, Catalog]:
        begun.append(trio.from_thread.run_sync(trio.current_time))
        trio.from_thread.run(trio.sleep, seconds)
        return reloader.settings.now, reloader.catalog

    reloader.plan = attrs.evolve(reloader.plan, reread=read)
    return begun


async def test_each_that_asks_gets_an_answer_of_its_own_in_turn(stage: Stage) -> None:
    node = await stage.start()
    wait_for_files(node, 1.0)
    found: list[ReloadOutcome] = []

    async def ask() -> None:
        found.append(await node.daemon.reload())

    async with trio.open_nursery() as nursery:
        for _ in range(REQUESTS_MAX + 2):
            nursery.start_soon(ask)
    taken = [one.generation for one in found if isinstance(one, ReloadTaken)]
    assert taken == list(range(2, REQUESTS_MAX + 2))
    assert sum(isinstance(one, ReloadUnavailable) for one in found) == 2


async def test_who_stops_waiting_stops_no_reload(stage: Stage) -> None:
    node = await stage.start()
    wait_for_files(node, 1.0)
    with trio.move_on_after(0.5):
        await node.daemon.reload()
    await until(lambda: node.metric("config_generation") == 2, AHEAD_SECONDS)


async def test_many_signals_are_few_reloads(stage: Stage) -> None:
    node = await stage.start()
    begun = wait_for_files(node, 1.0)
    for _ in range(50):
        node.daemon.reload_soon()
    await until(lambda: len(begun) == 1, AHEAD_SECONDS)
    for _ in range(50):
        node.daemon.reload_soon()
    await until(lambda: node.metric("config_generation") == 3, AHEAD_SECONDS)
    await trio.sleep(10)
    assert len(begun) == 2


async def test_a_drain_that_begins_meanwhile_ends_the_reload(stage: Stage) -> None:
    stage.kinds["an_hour"] = kind("an_hour", AHEAD_SECONDS * 1000)
    node = await stage.start(shutdown__grace_period_seconds=2 * AHEAD_SECONDS)
    await running(stage, "an_hour")
    wait_for_files(node, 1.0)
    found: list[ReloadOutcome] = []

    async def ask() -> None:
        found.append(await node.daemon.reload())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(0.5)
        node.daemon.stop()
        await trio.sleep(2)
        assert isinstance(await node.daemon.reload(), ReloadUnavailable)
    assert found == [ReloadUnavailable("the node drains")]
    assert reloader_of(node).generation == 1
    await node.ended.wait()
