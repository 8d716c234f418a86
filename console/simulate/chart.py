"""A run over time, in lines of blocks for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.console.simulate.model import Run
from musterd.store.words import duration_text

COLUMNS = 60
BLOCKS = " ▁▂▃▄▅▆▇█"


def chart_lines(name: str, run: Run, span_seconds: float, highest: tuple[int, int]) -> list[str]:
    """Two lines, the crew and the queue, each at its most within a column's time. `highest`: what
    a full block stands for in each.
    """
    crew, queue = crew_columns(run, span_seconds), queue_columns(run, span_seconds)
    return [
        f"{name:<8} crew   {bars(crew, highest[0])}  most {max(crew)}",
        f"{'':<8} queue  {bars(queue, highest[1])}  most {max(queue)}",
    ]


def scale_line(span_seconds: float) -> str:
    """The foot of a chart: where it begins and ends."""
    end = duration_text(span_seconds)
    return f"{'':<8}        0{end:>{COLUMNS - 1}}"


def bars(values: Sequence[int], highest: int) -> str:
    """One block a value. Only nothing looks like nothing."""
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[-(-value * top // max(1, highest))] for value in values)


def crew_columns(run: Run, span_seconds: float) -> list[int]:
    """The largest crew of each column's time."""
    columns = [0] * COLUMNS
    ends = [at for at, _ in run.sizes[1:]] + [span_seconds]
    for (since, size), until in zip(run.sizes, ends, strict=True):
        first, last = _column(since, span_seconds), _column(until, span_seconds)
        columns[first : last + 1] = [max(size, one) for one in columns[first : last + 1]]
    return columns


def queue_columns(run: Run, span_seconds: float) -> list[int]:
    """The longest queue of each column's time."""
    columns = [0] * COLUMNS
    for stretch, peak in enumerate(run.queue_peaks):
        column = _column(stretch * run.stretch_seconds, span_seconds)
        columns[column] = max(columns[column], peak)
    return columns


def _column(moment: float, span_seconds: float) -> int:
    if span_seconds <= 0:
        return 0
    return min(COLUMNS - 1, int(moment * COLUMNS / span_seconds))
