"""What is shown, and what is under way: values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

import attrs

from musterd.console.top.columns import Filter, matches, sorted_jobs
from musterd.manager.node.status import Decision
from musterd.store.lifecycle import ENDED, Action
from musterd.store.nodes import NodeRecord
from musterd.store.overview import OverviewJob
from musterd.store.queue import Counts

SAMPLES_MAX = 120
RATE_SECONDS = 10.0
Mode = Literal["table", "filter", "ask", "panel"]


class Size(NamedTuple):
    columns: int
    rows: int


@attrs.frozen
class StoreSnapshot:
    """The result of one look at the store. `at` is a local time, in seconds."""

    at: float
    now: datetime
    counts: Counts
    jobs: tuple[OverviewJob, ...]
    nodes: tuple[NodeRecord, ...]


@attrs.frozen
class NodeAnswer:
    """What the daemon on this machine says; `whole` None = it is silent."""

    whole: Mapping[str, Any] | None
    silence: str = ""
    decision: Decision | None = None


class Sample(NamedTuple):
    at: float
    due: int
    enqueued: int
    finished: int  # ever, also what has been deleted


@attrs.frozen
class ActOnJob:
    """Do something to one job."""

    action: Action
    job_id: int


@attrs.frozen
class OpenPanel:
    """Open a panel about one job."""

    what: Literal["why", "details"]
    job_id: int


@attrs.frozen
class SwitchQueue:
    pause: bool


@attrs.frozen
class SwitchTenant:
    tenant: str


@attrs.frozen
class ScreenCommand:
    """For the driver itself: look now, redraw, suspend, quit."""

    what: Literal["look", "redraw", "suspend", "quit"]


Command = ActOnJob | OpenPanel | SwitchQueue | SwitchTenant | ScreenCommand


@attrs.frozen
class Question:
    text: str
    command: Command


@attrs.frozen
class Panel:
    title: str
    lines: tuple[str, ...]
    top: int = 0


@attrs.frozen
class State:
    """`chosen` is the job under the cursor, `place` its last row, `top` the first visible row.
    `sort` -1: as the store returns them.
    """

    tenant: str
    tenants: tuple[str, ...]
    where: str
    size: Size
    listens: bool = True
    store: StoreSnapshot | None = None
    trouble: str | None = None  # why the store could not be read
    node: NodeAnswer | None = None
    samples: tuple[Sample, ...] = ()
    sort: int = -1
    reverse: bool = False
    filter: Filter = attrs.field(factory=Filter)
    chosen: int | None = None
    place: int = 0
    top: int = 0
    mode: Mode = "table"
    typed: str = ""
    question: Question | None = None
    panel: Panel | None = None
    message: str = ""
    is_frozen: bool = False

    @property
    def jobs(self) -> list[OverviewJob]:
        """The rows of the table."""
        if self.store is None:
            return []
        fitting = [job for job in self.store.jobs if matches(self.filter, job)]
        return sorted_jobs(fitting, self.sort, reverse=self.reverse, now=self.store.now)

    @property
    def rates(self) -> tuple[float, float] | None:
        """Jobs per second, in and out, over the last seconds; None = not known yet."""
        earlier = self.samples[:-1]
        if not earlier:
            return None
        last = self.samples[-1]
        recent = (one for one in earlier if last.at - one.at <= RATE_SECONDS)
        first = next(recent, earlier[-1])
        seconds = last.at - first.at
        if seconds <= 0:
            return None
        out = max(0, last.finished - first.finished)
        return (last.enqueued - first.enqueued) / seconds, out / seconds


def with_store(state: State, seen: StoreSnapshot) -> State:
    """The state after a look at the store. While the screen is frozen only the trend continues."""
    unfinished = sum(n for one, n in seen.counts.by_state.items() if one not in ENDED)
    enqueued = seen.counts.enqueued_total
    sample = Sample(seen.at, seen.counts.due, enqueued, enqueued - unfinished)
    samples = (*state.samples, sample)[-SAMPLES_MAX:]
    state = attrs.evolve(state, samples=samples, trouble=None)
    return state if state.is_frozen else settled(attrs.evolve(state, store=seen))


def switched(state: State, tenant: str, where: str) -> State:
    """Another tenant: nothing is known of it yet."""
    return attrs.evolve(
        state, tenant=tenant, where=where, store=None, trouble=None, node=None, samples=(),
        chosen=None, place=0, top=0, is_frozen=False,
    )  # fmt: skip


def resized(state: State, size: Size) -> State:
    return settled(attrs.evolve(state, size=size))


def settled(state: State, place: int | None = None) -> State:
    """Puts the cursor on a visible job: at `place`, else on its job, else on that job's last row.
    In the first row it stays there, whichever job is there.
    """
    jobs = state.jobs
    if not jobs:
        return attrs.evolve(state, chosen=None, place=0, top=0)
    if place is None:
        ids = [job.id for job in jobs]
        place = ids.index(state.chosen) if state.place and state.chosen in ids else state.place
    place = min(max(0, place), len(jobs) - 1)
    height = max(1, layout(state.size).table)
    top = min(max(state.top, place - height + 1), place)
    top = min(top, max(0, len(jobs) - height))
    return attrs.evolve(state, chosen=jobs[place].id, place=place, top=top)


class Layout(NamedTuple):
    """Rows of the screen for each part."""

    header: int
    heads: int
    table: int
    footer: int


def layout(size: Size) -> Layout:
    """What fits: the header gives way first, the table last."""
    header, heads, footer = next(parts for least, parts in LAYOUTS if size.rows >= least)
    return Layout(header, heads, max(0, size.rows - header - heads - footer), footer)


# From this many rows on: lines of the header, the heads, the footer.
LAYOUTS = ((14, (6, 1, 1)), (9, (3, 1, 1)), (4, (1, 1, 1)), (3, (0, 1, 1)), (2, (0, 0, 1)),
    (0, (0, 0, 0)))  # fmt: skip
