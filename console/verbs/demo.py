"""`musterd demo`: a temporary store, waves of jobs, and a crew that grows and shrinks."""

from __future__ import annotations

import logging
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import trio

from musterd import __version__
from musterd.catalog.kinds import Catalog
from musterd.config.load import load
from musterd.config.settings import Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.console.command import CommandLine, Verb
from musterd.console.output import LiveLine, live_line, say
from musterd.console.verbs.status import live_status, status_line
from musterd.console.wiring import Node, early_and_late_signals, make_node
from musterd.manager.log import set_up_log
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import NodeStatus
from musterd.manager.scaling.model.figures import quantile
from musterd.store.errors import StoreUnavailable
from musterd.store.jobs import NewJob
from musterd.store.leases import Settlement, Successes
from musterd.store.lifecycle import ENDED, AttemptOutcome, JobState
from musterd.store.words import count_text, duration_text, plural

DEMO_SECONDS_MAX = 20.0
END_SECONDS = 2.0  # kept of those for the drain
LOOK_SECONDS = 0.1
SINGLES = 10  # jobs that meet an idle crew: they measure the pick-up
SINGLE_PAUSE_SECONDS = 0.05
PROBE = "noop"
WAVES: Sequence[dict[str, int]] = (
    {"report": 12, "sleep": 12, "flaky": 4, "broken": 1, "declined": 1},
    {"report": 30, "sleep": 30, "urgent": 6, "flaky": 6, "overdue": 1, "declined": 1},
)
PERCENTILES = (50, 95)
DEMO_SETS = (
    "http.listen=",
    "workers.default_count=2",
    "workers.max_count=8",
    "workers.poll_interval_ms=100",
    "workers.scale_interval_ms=200",
    "scaling.down_cooldown_seconds=0.2",
    "scaling.stabilization_seconds=1",
    "shutdown.grace_period_seconds=3",
    "log.level=error",
)


@click.command(cls=Verb)
@click.pass_obj
def demo(cli: CommandLine) -> None:
    """Watch a crew at work for a few seconds.

    Uses a temporary store.
    """
    with (
        tempfile.TemporaryDirectory(prefix="musterd-demo-") as folder,
        live_line(quiet=cli.json) as live,
    ):
        url = f"store.url=sqlite:///{folder}/demo.db"
        nowhere = Path(folder) / "none.toml"
        # The machine's own settings stay out of it; what was typed counts.
        settings = load(None, {}, [*DEMO_SETS, *cli.sets, url], system_file=nowhere).settings
        catalog = cli.catalog(settings)
        show = Demo(settings, live, is_quiet=cli.json)
        log = set_up_log(settings.log.level, settings.log.format, time.monotonic)
        trio.run(show.run, catalog, log)
    cli.show([summary_object(show)], lambda: summary_lines(show))


class DemoMetrics(Metrics):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.metrics, __version__)
        self.pickups_seconds: list[float] = []
        self.outcomes: Counter[str] = Counter()
        self.retries = 0

    def pickup_seconds(self, percent: int) -> float:
        return quantile(sorted(self.pickups_seconds), percent / 100)

    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None:
        super().claimed(kind, waited_seconds)
        if kind == PROBE:
            self.pickups_seconds += [max(0.0, seconds) for seconds in waited_seconds]

    def settled(self, settlements: Sequence[Settlement], tenant: str = DEFAULT_TENANT) -> None:
        super().settled(settlements, tenant)
        for settlement in settlements:
            self.retries += settlement.outcome is AttemptOutcome.RETRYING
            if settlement.state in ENDED:
                self.outcomes[settlement.state.value] += 1

    def succeeded(self, successes: Successes, tenant: str = DEFAULT_TENANT) -> None:
        super().succeeded(successes, tenant)
        self.outcomes[JobState.SUCCEEDED.value] += len(successes.ids)


class Demo:
    """Plays its waves, watches the crew, and shows both."""

    def __init__(self, settings: Settings, live: LiveLine, *, is_quiet: bool) -> None:
        self.metrics = DemoMetrics(settings)
        self.enqueued = 0
        self.crew_peak = 0
        self.seconds = 0.0
        self._settings, self._live, self._is_quiet = settings, live, is_quiet
        self._size_said = -1

    async def run(self, catalog: Catalog, log: logging.Logger) -> None:
        node = make_node(self._settings, catalog, log, self.metrics)
        with early_and_late_signals(node.daemon.stop):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, node)
                nursery.start_soon(self._play_and_stop, node)
                await node.daemon.run()
                nursery.cancel_scope.cancel()

    async def _play_and_stop(self, node: Node) -> None:
        """Stopping the daemon earlier stops the demo."""
        try:
            with trio.move_on_after(DEMO_SECONDS_MAX - END_SECONDS):
                await self._play(node)
        except StoreUnavailable:
            if node.daemon.status().phase == "running":
                raise
        if node.daemon.status().phase == "running":
            node.daemon.stop()

    async def _play(self, node: Node) -> None:
        """Returns when all jobs have ended and the crew is back at its floor."""
        floor = self._settings.workers.default_count
        await _until(lambda: node.daemon.status().phase == "running")
        self._say(f"{SINGLES} jobs, one by one, for an idle crew")
        for _ in range(SINGLES):
            await self._enqueue(node, {PROBE: 1})
            await trio.sleep(SINGLE_PAUSE_SECONDS)
        for number, wave in enumerate(WAVES, start=1):
            self._say(f"wave {number}: {plural(sum(wave.values()), 'job')} at once")
            await self._enqueue(node, wave)
            await self._all_ended(node)
            self._say("nothing left to do: the crew shrinks to its minimum")
            await _until(lambda: _size(node.daemon.status()) <= floor)

    async def _watch(self, node: Node) -> None:
        started = trio.current_time()
        while True:
            status = node.daemon.status()
            self.seconds = trio.current_time() - started
            self.crew_peak = max(self.crew_peak, _size(status))
            self._draw(status)
            await trio.sleep(LOOK_SECONDS)

    async def _enqueue(self, node: Node, wave: dict[str, int]) -> None:
        jobs = [
            NewJob(kind, f'{{"number": {number}}}', 100 if kind == "urgent" else 0)
            for kind, count in wave.items()
            for number in range(count)
        ]
        await node.engine.jobs.enqueue(jobs)
        self.enqueued += len(jobs)

    async def _all_ended(self, node: Node) -> None:
        while True:
            by_state = (await node.engine.queue.counts()).by_state
            if not any(count for state, count in by_state.items() if state not in ENDED):
                return
            await trio.sleep(LOOK_SECONDS)

    def _draw(self, status: NodeStatus) -> None:
        self._live.show(live_status(status))
        is_new = _size(status) != self._size_said and status.phase == "running"
        if self._live.is_quiet and is_new:
            self._size_said = _size(status)
            self._say(f"  {self.seconds:4.1f} s  {status_line(status)}")

    def _say(self, text: str) -> None:
        if not self._live.is_quiet:
            self._live.write(text + "\n")
        elif not self._is_quiet:
            say(text)


def summary_object(show: Demo) -> dict[str, object]:
    notes = show.metrics
    return {
        "seconds": round(show.seconds, 3),
        "enqueued": show.enqueued,
        "outcomes": dict(notes.outcomes),
        "retries": notes.retries,
        "crew_peak": show.crew_peak,
        **{
            f"pickup_p{percent}_ms": round(1000 * notes.pickup_seconds(percent), 3)
            for percent in PERCENTILES
        },
    }


def summary_lines(show: Demo) -> list[str]:
    notes = show.metrics
    ended = ", ".join(f"{count_text(n)} {name}" for name, n in notes.outcomes.most_common())
    pickups = ", ".join(
        f"p{percent} {duration_text(notes.pickup_seconds(percent))}" for percent in PERCENTILES
    )
    return [
        "",
        f"{plural(show.enqueued, 'job')} in {duration_text(show.seconds)}: {ended or 'none ended'}",
        f"  retries      {notes.retries}",
        f"  crew peak    {show.crew_peak}",
        f"  pick-up      {pickups}  (a job that meets an idle worker)",
        "",
        "Now for real: `musterd run`, and in another terminal `musterd enqueue report --wait`.",
    ]


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - a status rings no bell
        await trio.sleep(LOOK_SECONDS)


def _size(status: NodeStatus) -> int:
    return status.idle + status.busy + status.retiring
