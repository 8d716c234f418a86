"""A process: one daemon of the product's, which can be stopped, killed, told and started again."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any, Protocol

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.faults import ConfigError, Fault
from musterd.config.settings import Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.metrics.metrics import InstrumentedEngine, Metrics
from musterd.manager.node.daemon import Daemon
from musterd.manager.tenancy.deps import DaemonDeps
from musterd.workers.context import JobContext
from tests.simulation.handlers import HOST
from tests.simulation.line import Ground, Line
from tests.simulation.receiving import Receiver
from tests.simulation.scheduling import GATE, Between, Gate, outside_of_all
from tests.support.stage import compute


class Place(Ground, Protocol):
    """Where processes live. `now` is the recorder's clock."""

    between: Between
    catalog: Catalog
    receiver: Receiver

    def now(self) -> float: ...
    def befallen(self, what: str) -> None: ...
    def rng(self, name: str) -> random.Random: ...


class Watched(Metrics):
    """What it is told of the crew is in the history."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.settings.metrics, "1")
        self._process = process
        self._size = -1

    def crew(self, idle: int, busy: int, retiring: int, tenant: str = DEFAULT_TENANT) -> None:
        super().crew(idle, busy, retiring, tenant)
        if idle + busy != self._size:
            self._size = idle + busy
            self._process.tell_crew(self._size)


class Silent(logging.Handler):
    """Nobody reads these logs, and to write them takes time."""

    def emit(self, record: logging.LogRecord) -> None:
        """Says nothing."""


def silent_log() -> logging.Logger:
    log = logging.getLogger("musterd.simulated")
    log.handlers, log.propagate = [Silent()], False
    log.setLevel(logging.CRITICAL)
    return log


@attrs.define(eq=False)
class Process:
    """`incarnation` counts the processes of this name. `skew_seconds`: by how much its machine's
    clock is wrong. `fresh`: what a reload finds; None = something that is no configuration.
    """

    place: Place
    name: str
    incarnation: int
    settings: Settings
    skew_seconds: float = 0.0
    fresh: Settings | None = None
    is_dead: bool = False  # killed: it does nothing any more, and has not ended
    is_told: bool = False
    is_frozen: bool = False
    gate: Gate = attrs.field(factory=Gate)
    ended: trio.Event = attrs.field(factory=trio.Event)
    line: Line = attrs.field(init=False)
    daemon: Daemon = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.line = Line(self.place, f"node:{self.name}")
        self.daemon = Daemon(self._plan())

    def _plan(self) -> DaemonDeps:
        place, metrics, log = self.place, Watched(self), silent_log()
        origin = 1000.0 * self.incarnation  # no two machines have been up for equally long
        return DaemonDeps(
            settings=self.settings,
            catalog=place.catalog,
            engine=InstrumentedEngine(self.line, metrics, log, trio.current_time),
            node=self.name,
            rng=place.rng(f"{self.name}/{self.incarnation}"),
            metrics=metrics,
            log=log,
            boottime=lambda: place.now() + origin,
            wall_clock=lambda: place.store.wall_clock() + self.skew_seconds,
            reread=self._reread,
            post=place.receiver.post,
            load=lambda: 0.5,
            compute=compute,
            abandon=lambda _status: self.leave_behind(),
        )

    def _reread(self) -> tuple[Settings, Catalog]:
        if self.fresh is None:
            raise ConfigError([Fault("simulation", found="no such number")])
        return self.fresh, self.place.catalog

    # -- its life

    def start(self) -> None:
        self.place.recorder.note("process", what="started", node=self.name)
        self._within(self.place.nursery.start_soon, self._run)

    def _within(self, work: Callable[..., object], *args: Any) -> None:
        """Calls it as this process: what is begun there is behind its gate."""

        def enter() -> None:
            GATE.set(self.gate)
            HOST.set(self)
            work(*args)

        outside_of_all(enter)

    async def _run(self) -> None:
        try:
            await self.daemon.run()
        except BaseExceptionGroup as errors:
            self.place.crashed(self.line.who, errors)
            cancelled = errors.subgroup(trio.Cancelled)
            if cancelled is not None:
                raise cancelled from None
        except Exception as error:  # noqa: BLE001 - whatever gets out of a daemon is a finding
            self.place.crashed(self.line.who, error)
        self._note_end()

    def _note_end(self) -> None:
        if not self.ended.is_set():
            self.place.recorder.note("process", what="ended", node=self.name, children=0)
            self.ended.set()

    @property
    def is_up(self) -> bool:
        return not (self.is_dead or self.ended.is_set())

    def leave_behind(self) -> None:
        """As `os._exit`: whatever still runs in it ends with it."""
        self._note_end()
        self.is_dead = True
        self.place.between.soon(self.gate.shut)

    def kill(self) -> None:
        """As kill -9. What it has sent may still arrive."""
        if self.is_up:
            self.place.between.soon(self._kill)

    def _kill(self) -> None:
        if self.is_up:
            self.place.recorder.note("fault", what="kill", node=self.name)
            self.is_dead, self.is_frozen = True, False
            self.gate.shut()
            self.ended.set()

    def freeze(self, what: str = "freeze") -> None:
        """As SIGSTOP."""
        self.place.between.soon(lambda: self._freeze(what))

    def _freeze(self, what: str) -> None:
        if self.is_up and not self.is_frozen:
            self.is_frozen = True
            if what != "freeze":
                self.place.recorder.note("fault", what=what, node=self.name)
            self.place.recorder.note("fault", what="freeze", node=self.name)
            self.gate.shut()

    def thaw(self) -> None:
        """As SIGCONT."""
        if self.is_frozen:
            self.is_frozen = False
            self.place.recorder.note("fault", what="thaw", node=self.name)
            if not self.is_dead:
                self.gate.open()

    def terminate(self) -> None:
        """As SIGTERM; the second time it dismisses at once."""
        fields = {"at_once": True} if self.is_told else {}
        self.is_told = True
        self.place.recorder.note("process", what="told", node=self.name, **fields)
        self.daemon.stop()

    def reload(self, fresh: Settings | None) -> None:
        """As SIGHUP, with this in its file by now."""
        self.fresh = fresh
        self.daemon.reload_soon()

    def tell_crew(self, size: int) -> None:
        status = self.daemon.status().tenants[0]
        bounds = {"min": status.default_count, "max": status.max_count}
        self.place.recorder.note("crew", node=self.name, size=size, **bounds)

    # -- what its handlers do

    def tell(self, record: str, job: JobContext, **fields: Any) -> None:
        fence, phase = job.fence, job.phase
        if phase is not None:
            fields["phase"] = phase
        if record != "told":
            fields = {"who": self.line.who, "token": fence.token, **fields}
        self.place.recorder.note(record, job=fence.id, attempt=fence.attempt, **fields)

    def befallen(self, what: str) -> None:
        self.place.befallen(what)

    def block_loop(self, seconds: float) -> None:
        """Nothing else in this process runs for so long."""
        self.place.befallen("blocked_loop")
        self.freeze("blocked_loop")

        async def unblock() -> None:
            await trio.sleep(seconds)
            self.thaw()

        outside_of_all(self.place.nursery.start_soon, unblock)

    def die(self, job: JobContext) -> None:
        """A handler takes its process with it."""
        self.place.befallen("poison")
        self.place.recorder.note("fault", what="poison", job=job.fence.id)
        self.kill()
