"""A simulated world: a store, processes, users and weather, on one clock."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from typing import Any

import attrs
import trio

from musterd.config.settings import Settings, lease_plan
from musterd.store.queue import Hint
from tests.simulation.kinds import catalog_of, settings_of
from tests.simulation.line import Line
from tests.simulation.plan import Scenario
from tests.simulation.process import Process
from tests.simulation.receiving import Receiver
from tests.simulation.recording import Recorder
from tests.simulation.scheduling import Between, outside_of_all
from tests.simulation.store import Store
from tests.simulation.weather import Weather

HOUR_SECONDS = 3600.0
REACT_SECONDS = 10.0  # of a crew that is too small
READ_BACK_SECONDS = 2.5  # the longest pause of a loop, and a little
REST_SECONDS = 20.0  # for what no setting tells: looks of duties, retries of the store


@attrs.frozen
class Finding:
    """Something that is wrong and that no history tells: `crash` or `stuck`."""

    what: str
    story: str


class World:
    """`slept_seconds`: for so long all machines were suspended, with no process's clock running."""

    def __init__(self, scenario: Scenario, nursery: trio.Nursery, between: Between) -> None:
        self.scenario, self.nursery, self.between = scenario, nursery, between
        self.slept_seconds = 0.0
        self.is_over = self.is_calm = False
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.settings = settings_of(scenario.knobs)
        self.catalog = catalog_of(self.settings, scenario.caps)
        self.recorder = Recorder(self.now, **header_of(self))
        self.store = Store(self.now, self.recorder, self._hint)
        self.weather = Weather(self.now, self.rng("weather"), scenario.lag_seconds, self.counts)
        self.receiver = Receiver(self.recorder, self.weather)
        self.processes: dict[str, Process] = {}  # the latest of each name
        self.started: list[Process] = []  # all that there ever were
        self.clients: dict[str, Line] = {}
        self.jobs: list[int] = []  # that users were told of

    def now(self) -> float:
        return trio.current_time() + self.slept_seconds

    def rng(self, name: str) -> random.Random:
        return random.Random(f"{self.scenario.seed} {name}")

    def befallen(self, what: str) -> None:
        self.counts[what] += 1

    def announce(self, what: str, **fields: object) -> None:
        """A fault begins."""
        self.befallen(what)
        self.recorder.note("fault", what=what, **fields)

    def crashed(self, who: str, error: BaseException) -> None:
        if not self.is_over:
            told = "".join(traceback.format_exception(error))
            self.findings.append(Finding("crash", f"{who}: {told}"))

    # -- processes

    def up(self) -> list[Process]:
        return [one for one in self.processes.values() if one.is_up]

    def start(self, name: str) -> Process:
        """A new process of that name, whatever became of the last one."""
        before = self.processes.get(name)
        process = Process(self, name, before.incarnation + 1 if before else 0, self.settings)
        if before is not None:
            process.skew_seconds = before.skew_seconds
        self.processes[name] = process
        self.started.append(process)
        process.start()
        return process

    def client(self, name: str) -> Line:
        line = self.clients.get(name)
        if line is None:
            line = self.clients[name] = Line(self, f"client:{name}")
        return line

    # -- wake-ups

    def _hint(self, hint: Hint) -> None:
        if self.scenario.hintless:
            return
        for process in self.processes.values():
            if process.is_up:
                self._hint_one(process.line, process.name, hint)

    def duties_free(self, who: str) -> None:
        if self.scenario.hintless:
            return
        hint = Hint(False, frozenset(), duties=True)
        for process in self.processes.values():
            if process.is_up and process.line.who != who:
                self._hint_one(process.line, process.name, hint)

    def _hint_one(self, line: Line, node: str, hint: Hint) -> None:
        weather = self.weather
        if not weather.spells:
            line.hint(hint)
        elif weather.is_deaf("hints_lost", node):
            return
        elif weather.is_deaf("hints_late", node):
            self._hint_later(line, hint)
        else:
            line.hint(hint)
            if weather.is_deaf("hints_doubled", node):
                self._hint_later(line, hint)

    def _hint_later(self, line: Line, hint: Hint) -> None:
        async def later() -> None:
            await trio.sleep(1.5)
            line.hint(hint)

        outside_of_all(self.nursery.start_soon, later)


def header_of(world: World) -> dict[str, Any]:
    settings, scenario = world.settings, world.scenario
    leases = lease_plan(settings)
    # A node looks at its leases now and then, so it stops a little later than it trusts them.
    look = min(leases.margin_seconds, leases.heartbeat_seconds) / 2
    retry, duty = settings.retry, settings.duties.lease_seconds
    shutdown = settings.shutdown
    caps = dict(scenario.caps)
    if settings.limits.max_running:
        caps[""] = settings.limits.max_running
    grace = shutdown.grace_period_seconds
    return {
        "lease_seconds": leases.lease_seconds,
        "margin_seconds": leases.margin_seconds - look - 0.01,
        "look_seconds": look,
        "stop_seconds": STOP_SECONDS_MAX + look if "hung_handler" in scenario.faults else 0.0,
        "caps": caps,
        "budgets": {"": retry.max_retries + 1},
        "duty_trust_seconds": 0.07 * duty,
        "duty_look_seconds": duty / 40,
        "grace_seconds": grace,
        "schedules": bool(settings.schedules),
        **retention_of(settings),
        "bounds": {
            "end": end_bound(scenario),
            "reclaim": leases.lease_seconds + duty + REST_SECONDS,
            "duty": duty + REST_SECONDS,
            "drain": grace + shutdown.dismiss_seconds + shutdown.abandon_seconds + REST_SECONDS,
            "read_back": READ_BACK_SECONDS,
            "react": REACT_SECONDS,
            "tell": 2 * leases.heartbeat_seconds + 5.0,
        },
    }


def retention_of(settings: Settings) -> dict[str, object]:
    hours = settings.retention.delete_after_hours
    if hours * 3600 > HOUR_SECONDS:
        return {}  # longer than any simulation
    return {"retention": dict.fromkeys(("succeeded", "failed", "canceled"), hours * 3600)}


STOP_SECONDS_MAX = 8.1  # a handler that does not go at once goes after this long


def end_bound(scenario: Scenario) -> float:
    """By then every job has ended, were there but one worker."""
    deeds = [*scenario.deeds, *scenario.business]
    jobs = sum(len(deed.values["jobs"]) for deed in deeds if deed.what == "enqueue")
    return 60.0 + jobs * (5.0 + 2 * scenario.lease_seconds)
