"""What is shown and what is under way: values; and the table of jobs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import attrs

from musterd.config.faults import did_you_mean
from musterd.console.top.terminal import Size, width
from musterd.manager.node.status import Decision
from musterd.store.lifecycle import ENDED, LEASED, Action, JobState
from musterd.store.nodes import NodeRecord
from musterd.store.overview import SHOWN_FIRST, OverviewFilter, OverviewJob
from musterd.store.queue import Counts
from musterd.store.words import duration_text, one_line

Cell = Callable[[OverviewJob, datetime], str]
Key = Callable[[OverviewJob, datetime], Any]  # its values are of one type
GAP = 1


@attrs.frozen
class Column:
    """`rank`: lower ones stay longer on a narrow terminal."""

    head: str
    cell: Cell
    key: Key
    rank: int
    widest: int
    right: bool = False


def age_seconds(job: OverviewJob, now: datetime) -> float:
    """How long the job has run, waited, or been finished; negative: until it is due."""
    since = job.run_at if job.state is JobState.QUEUED else None
    if job.state in LEASED:
        since = job.started_at
    elif job.state in ENDED:
        since = job.finished_at
    return (now - (since or job.created_at)).total_seconds()


def sorted_jobs(
    jobs: Sequence[OverviewJob], column: int, *, reverse: bool, now: datetime
) -> list[OverviewJob]:
    """By that column, stably; -1: as the store returned them."""
    if column < 0:
        return list(reversed(jobs) if reverse else jobs)
    return sorted(jobs, key=lambda job: COLUMNS[column].key(job, now), reverse=reverse)


def shown_columns(
    jobs: Sequence[OverviewJob], now: datetime, cells: int, marked: int = -1
) -> list[tuple[Column, int]]:
    """The columns that fit and their widths; the last gets the rest, `marked` room for its mark."""
    widths = {
        one.head: max([len(one.head), *(width(one_line(one.cell(job, now))) for job in jobs)])
        for one in COLUMNS
    }
    if marked >= 0:
        head = COLUMNS[marked].head
        widths[head] = max(widths[head], len(head) + 1)
    kept: list[Column] = []
    left = cells
    for column in sorted(COLUMNS, key=lambda one: one.rank):
        need = min(widths[column.head], column.widest) + (GAP if kept else 0)
        if kept and need > left:
            break
        kept.append(column)
        left -= need
    found = [(one, min(widths[one.head], one.widest, cells)) for one in COLUMNS if one in kept]
    last, room = found[-1]
    if not last.right:
        found[-1] = (last, room + max(0, left))
    return found


def _age(job: OverviewJob, now: datetime) -> str:
    seconds = age_seconds(job, now)
    return f"in {duration_text(-seconds)}" if seconds < 0 else duration_text(seconds)


def _tries(job: OverviewJob, _now: datetime) -> str:
    return str(job.attempt) if job.max_attempts is None else f"{job.attempt}/{job.max_attempts}"


def _state(job: OverviewJob, _now: datetime) -> str:
    if job.request is not None:
        return f"{job.request}ing" if job.request == "cancel" else "pausing"
    if job.state is JobState.QUEUED and (job.parked or job.behind):
        return "at limit" if job.parked else "behind"
    return job.state.value


def _progress(job: OverviewJob, _now: datetime) -> str:
    return "" if job.progress is None else f"{int(job.progress)} %"


def _where(job: OverviewJob, _now: datetime) -> str:
    if job.state not in LEASED or job.node is None:
        return ""
    return job.node if job.worker is None else f"{job.worker}@{job.node}"


COLUMNS: tuple[Column, ...] = (
    Column("ID", lambda job, _: str(job.id), lambda job, _: job.id, 0, 12, right=True),
    Column("KIND", lambda job, _: job.kind, lambda job, _: job.kind, 2, 24),
    Column("TARGET", lambda job, _: job.target or "", lambda job, _: job.target or "", 6, 16),
    Column("STATE", _state, _state, 1, 9),
    Column("TIME", _age, age_seconds, 3, 11, right=True),
    Column("TRY", _tries, lambda job, _: job.attempt, 5, 6, right=True),
    Column("DONE", _progress, lambda job, _: -1.0 if job.progress is None else job.progress, 4, 5,
        right=True),
    Column("WORKER", _where, _where, 7, 26),
    Column("", lambda job, _: job.remark, lambda job, _: job.remark, 8, 12),
)  # fmt: skip


JOBS_SHOWN = 200  # jobs of each sort that are shown
JOBS_SCANNED = 2_000  # scanned for one kind or target
FILTER_KEYS = ("state", "kind", "target")
FILTER_HELP = "state=failed,paused kind=NAME target=NAME, and any text"


@attrs.frozen
class Filter:
    """Empty and None match everything. All `words` must occur in the job's text."""

    text: str = ""
    states: tuple[JobState, ...] = ()
    kind: str | None = None
    target: str | None = None
    words: tuple[str, ...] = ()

    @property
    def wanted(self) -> OverviewFilter:
        """The part of the filter that the store applies."""
        narrow = self.kind is not None or self.target is not None
        states = self.states or SHOWN_FIRST
        return OverviewFilter(
            states, self.kind, self.target, JOBS_SHOWN, JOBS_SCANNED if narrow else JOBS_SHOWN
        )


def read_filter(text: str) -> Filter:
    """Reads `state=failed kind=report error`. Raises ValueError."""
    states: list[JobState] = []
    words: list[str] = []
    named: dict[str, str] = {}
    for part in text.split():
        key, equals, value = part.partition("=")
        if not equals:
            words.append(part.casefold())
        elif key == "state":
            states += _read_states(value)
        elif key not in FILTER_KEYS:
            raise ValueError(f"{key}= is unknown, wanted {FILTER_HELP}")
        elif not value:
            raise ValueError(f"{key}= needs a value")
        else:
            named[key] = value
    return Filter(" ".join(text.split()), tuple(states), **named, words=tuple(words))


def matches(which: Filter, job: OverviewJob) -> bool:
    """The store applies the filter too, but the screen may still show an older answer."""
    if which.states and job.state not in which.states:
        return False
    if which.kind not in (None, job.kind) or which.target not in (None, job.target):
        return False
    if not which.words:
        return True
    parts = (str(job.id), job.kind, job.state.value, job.target, job.node, job.remark)
    text = "\n".join(part for part in parts if part).casefold()
    return all(word in text for word in which.words)


def _read_states(value: str) -> list[JobState]:
    names = [state.value for state in JobState]
    for name in value.split(","):
        if name not in names:
            hint = did_you_mean(name, names) or f"wanted {', '.join(names)}"
            raise ValueError(f"there is no state {name!r}: {hint}")
    return [JobState(name) for name in value.split(",")]


SAMPLES_MAX = 120
RATE_SECONDS = 10.0
Mode = Literal["table", "filter", "ask", "panel"]


@attrs.frozen
class StoreSnapshot:
    """`at` is a local time in seconds."""

    at: float
    now: datetime
    counts: Counts
    jobs: tuple[OverviewJob, ...]
    nodes: tuple[NodeRecord, ...]


@attrs.frozen
class NodeAnswer:
    """The daemon's answer; `whole` None = it is silent."""

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
    action: Action
    job_id: int


@attrs.frozen
class OpenPanel:
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
    """For the driver itself."""

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
    """`chosen` is the job under the cursor, `place` its last row, `top` the first visible row."""

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
    """After a look at the store. While the screen is frozen, only the trend continues."""
    unfinished = sum(n for one, n in seen.counts.by_state.items() if one not in ENDED)
    enqueued = seen.counts.enqueued_total
    sample = Sample(seen.at, seen.counts.due, enqueued, enqueued - unfinished)
    samples = (*state.samples, sample)[-SAMPLES_MAX:]
    state = attrs.evolve(state, samples=samples, trouble=None)
    return state if state.is_frozen else settled(attrs.evolve(state, store=seen))


def switched(state: State, tenant: str, where: str) -> State:
    return attrs.evolve(
        state, tenant=tenant, where=where, store=None, trouble=None, node=None, samples=(),
        chosen=None, place=0, top=0, is_frozen=False,
    )  # fmt: skip


def resized(state: State, size: Size) -> State:
    return settled(attrs.evolve(state, size=size))


def settled(state: State, place: int | None = None) -> State:
    """Puts the cursor on a visible job: at `place`, else on its job, else on that job's last row.
    In the first row it stays there, whatever job that is.
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
