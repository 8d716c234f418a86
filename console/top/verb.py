"""`musterd top`: reads store, daemon, keys and signals; draws; executes commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import attrs
import click
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.faults import ConfigError
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.console.command import CommandLine, Verb, option_reader, seconds_option
from musterd.console.daemon_client import DaemonSilent, ask_daemon
from musterd.console.output import Complaint, innermost
from musterd.console.top.drawing import draw, snapshot_lines, snapshot_object
from musterd.console.top.key_bindings import press
from musterd.console.top.state import (
    ActOnJob,
    Command,
    Filter,
    NodeAnswer,
    OpenPanel,
    Panel,
    ScreenCommand,
    State,
    StoreSnapshot,
    SwitchQueue,
    SwitchTenant,
    read_filter,
    resized,
    switched,
    with_store,
)
from musterd.console.top.terminal import Keys, Painter, Size, Terminal
from musterd.console.verbs.status import decision_of
from musterd.console.verbs.store import whoami
from musterd.store.engine import Engine
from musterd.store.errors import StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.opening import engine_for, reached
from musterd.store.report import control_refusal, report_text
from musterd.store.waiting import Bell
from musterd.store.why import why, why_text
from musterd.store.words import one_line

INTERVAL_SECONDS = (0.1, 3600.0)


@click.command(cls=Verb)
@seconds_option("--interval", within=INTERVAL_SECONDS, default=1.0, about="How often to update.")
@click.option(
    "--filter",
    "which",
    default="",
    callback=option_reader(read_filter),
    metavar="FILTER",
    help="Start with this filter, as typed after `/`: state=failed kind=NAME target=NAME text.",
)
@click.option("--once", is_flag=True, help="Print one snapshot as plain text and exit.")
@click.pass_context
def top(context: click.Context, /, interval: float, which: Filter, once: bool) -> None:
    """Watch and control queue, crew and jobs on one screen.

    Press ? for the keys. Without a terminal, or with --once or --json, prints one snapshot.
    """
    cli: CommandLine = context.obj
    settings = cli.settings_for()
    own = cli.of_tenant(settings)
    catalog = None
    with suppress(ConfigError):  # a catalog with faults is the daemon's matter
        catalog = cli.catalog(settings)
    where, listens = engine_for(own).where, bool(settings.http.listen)
    state = State(own.tenant, tuple(settings.tenants), where, Size(80, 24), listens, filter=which)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if once or cli.json or not is_terminal:
        state = _one_look(own, state)
        cli.show([snapshot_object(state)], lambda: snapshot_lines(state))
    else:
        _watch(settings, state, interval, catalog, colour=context.color is not False)


def _one_look(settings: Settings, state: State) -> State:
    """Raises if the store is away or misconfigured."""

    async def look() -> State:
        async with reached(engine_for(settings)) as engine:
            seen = await read_store(engine, state.filter)
        return attrs.evolve(with_store(state, seen), node=await read_daemon(settings))

    return trio.run(look)


def _watch(
    settings: Settings, state: State, interval: float, catalog: Catalog | None, *, colour: bool
) -> None:
    terminal = Terminal()
    deps = DriverDeps(
        interval_seconds=interval,
        settings_of=lambda tenant: settings_of(settings, tenant),
        engine_of=engine_for,
        ask=read_daemon,
        catalog=catalog,
        by=whoami(),
    )
    painter = Painter(colour=colour, encoding=terminal.encoding)
    with terminal.taken():
        trio.run(Driver(resized(state, terminal.size()), deps, terminal, painter).run)


ESCAPE_SECONDS = 0.05  # within which the rest of a key's sequence comes
COMMAND_SECONDS = 20.0
AWAY_SECONDS_MIN = 1.0  # between two tries to reach a store
SIGNALS = (
    *(signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT),
    *(signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT),
)


class Screen(Protocol):
    """A terminal, or its stand-in in a test."""

    def size(self) -> Size: ...

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    def suspend(self) -> None: ...

    def resume(self) -> None: ...


@attrs.frozen
class DriverDeps:
    """`ask` asks the daemon; `by` is the name for pausing the queue."""

    interval_seconds: float
    settings_of: Callable[[str], Settings]
    engine_of: Callable[[Settings], Engine]
    ask: Callable[[Settings], Awaitable[NodeAnswer]]
    catalog: Catalog | None
    by: str


class Driver:
    """Owns the tasks behind the screen; `run` returns when the user quits."""

    def __init__(self, state: State, deps: DriverDeps, screen: Screen, painter: Painter) -> None:
        self.state = state
        self._deps, self._screen, self._painter = deps, screen, painter
        self._engine: Engine | None = None  # of the present tenant, while it is reached
        self._changed, self._hurry = Bell(), Bell()
        self._tenant_scope = trio.CancelScope()
        self.has_ended = False

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._obey_signals)
            nursery.start_soon(self._draw_forever)
            nursery.start_soon(self._read_keys)
            nursery.start_soon(self._look_forever)
        self.has_ended = True

    def _show(self, state: State) -> None:
        self.state = state
        self._changed.ring()

    def _say(self, message: str) -> None:
        self._show(attrs.evolve(self.state, message=message))

    def _quit(self) -> None:
        self._nursery.cancel_scope.cancel()

    async def _draw_forever(self) -> None:
        try:
            while True:
                self._changed.clear()
                await self._screen.write(self._painter.paint(draw(self.state)))
                await self._changed.wait()
        except OSError:
            self._quit()  # the terminal has gone

    async def _read_keys(self) -> None:
        keys = Keys()
        while data := await self._screen.read():
            self._press_all(keys.feed(data))
            while keys.is_waiting:
                more = b""
                with trio.move_on_after(ESCAPE_SECONDS):
                    more = await self._screen.read()
                self._press_all(keys.feed(more) if more else keys.flush())
        self._quit()

    def _press_all(self, keys: list[str]) -> None:
        for key in keys:
            state, commands = press(self.state, key)
            self._show(state)
            for command in commands:
                self._obey(command)

    async def _obey_signals(self) -> None:
        with trio.open_signal_receiver(*SIGNALS) as received:
            async for number in received:
                if number == signal.SIGTSTP:
                    self._suspend()
                elif number == signal.SIGCONT:
                    self._screen.resume()
                    self._redraw()
                elif number == signal.SIGWINCH:
                    self._redraw()
                else:
                    self._quit()

    def _obey(self, command: Command) -> None:
        match command:
            case ScreenCommand(what="quit"):
                self._quit()
            case ScreenCommand(what="suspend"):
                self._suspend()
            case ScreenCommand(what="redraw"):
                self._redraw()
            case ScreenCommand():
                self._hurry.ring()
            case SwitchTenant(tenant):
                settings = self._deps.settings_of(tenant)
                self._show(switched(self.state, tenant, self._deps.engine_of(settings).where))
                self._tenant_scope.cancel()
            case ActOnJob() | OpenPanel() | SwitchQueue():
                self._nursery.start_soon(self._run_command, command)

    def _suspend(self) -> None:
        self._screen.suspend()
        self._redraw()

    def _redraw(self) -> None:
        self._painter.forget()
        self._show(resized(self.state, self._screen.size()))

    async def _look_forever(self) -> None:
        """One tenant after another, as the user switches."""
        while True:
            with trio.CancelScope() as self._tenant_scope:
                await self._look_at(self._deps.settings_of(self.state.tenant))

    async def _look_at(self, settings: Settings) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._ask_node, settings)
            while True:
                try:
                    await self._look_at_store(settings)
                except* AWAY as group:
                    self._engine = None
                    self._away(group)
                await trio.sleep(max(AWAY_SECONDS_MIN, self._deps.interval_seconds))

    async def _look_at_store(self, settings: Settings) -> None:
        async with reached(self._deps.engine_of(settings)) as self._engine:
            while True:
                self._hurry.clear()
                try:
                    seen = await read_store(self._engine, self.state.filter)
                    self._show(with_store(self.state, seen))  # the state as it is by now
                except AWAY as error:
                    self._away(error)
                await self._hurry.wait(self._deps.interval_seconds)

    def _away(self, error: BaseException) -> None:
        self._show(attrs.evolve(self.state, trouble=one_line(str(innermost(error)))))

    async def _ask_node(self, settings: Settings) -> None:
        while True:
            seen = await self._deps.ask(settings)
            if not self.state.is_frozen:
                self._show(attrs.evolve(self.state, node=seen))
            await trio.sleep(self._deps.interval_seconds)

    async def _run_command(self, command: ActOnJob | OpenPanel | SwitchQueue) -> None:
        engine, tenant = self._engine, self.state.tenant
        if engine is None:
            self._say("the store does not answer: nothing was done")
            return
        try:
            with trio.fail_after(COMMAND_SECONDS):
                await self._carry_out(engine, command)
        except trio.TooSlowError:
            self._say("the store does not answer: it may or may not have been done")
        except StoreError as error:
            self._say(f"not done: {one_line(str(error))}")
        if tenant == self.state.tenant:
            self._hurry.ring()

    async def _carry_out(self, engine: Engine, command: ActOnJob | OpenPanel | SwitchQueue) -> None:
        match command:
            case ActOnJob(action, job_id):
                done = await engine.control.apply(action, job_id)
                said = f"job {job_id} is {done.state_after}"
                if not done.allowed:
                    said = control_refusal(job_id, action, done.state_before)
                elif done.requested:
                    said = f"job {job_id}: its worker has been asked to {action} it"
                self._say(said)
            case OpenPanel(what, job_id):
                panel = await self._panel(engine, what, job_id)
                self._show(attrs.evolve(self.state, mode="panel", panel=panel))
            case SwitchQueue(pause=True):
                changed = await engine.queue.pause(self._deps.by)
                self._say("the queue is paused" if changed else "the queue was paused already")
            case SwitchQueue():
                changed = await engine.queue.resume()
                self._say("the queue is resumed" if changed else "the queue was not paused")

    async def _panel(self, engine: Engine, what: str, job_id: int) -> Panel:
        title, text = f"job {job_id}", f"there is no job {job_id} any more"
        catalog, seen = self._deps.catalog, self.state.store
        if what == "why" or seen is None:
            facts = await engine.jobs.why_facts(job_id)
            if facts is not None:
                title, text = f"why {job_id}", why_text(why(facts))
        elif (record := await engine.jobs.get(job_id)) is not None:
            budget = None if catalog is None else catalog.budget_of(record.kind)
            text = report_text(record, seen.now, budget)
        return Panel(title, tuple(text.splitlines()))


AWAY = (StoreUnavailable, StoreMisconfigured, Complaint)  # what the screen says, and goes on


async def read_store(engine: Engine, which: Filter) -> StoreSnapshot:
    """All that the screen shows of the store; the cost does not grow with the queue."""
    overview = await engine.overview.jobs(which.wanted)
    counts = await engine.queue.counts()
    nodes = await engine.nodes.all()
    return StoreSnapshot(trio.current_time(), overview.now, counts, overview.jobs, tuple(nodes))


async def read_daemon(settings: Settings) -> NodeAnswer:
    """Never raises: silence is an answer too."""

    def ask() -> NodeAnswer:
        query = f"?tenant={settings.tenant}"
        try:
            whole = ask_daemon(settings, f"/status{query}")
            decisions = ask_daemon(settings, f"/scaling{query}").get("decisions") or [None]
        except DaemonSilent as silence:
            return NodeAnswer(None, str(silence))
        return NodeAnswer(whole, decision=decision_of(decisions[-1]))

    return await trio.to_thread.run_sync(ask, abandon_on_cancel=True)
