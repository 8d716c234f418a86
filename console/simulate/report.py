"""The output of `musterd simulate`: an object for programs, tables and a chart for people. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from musterd.console.output import bars
from musterd.console.simulate.model import (
    Figures,
    ModelSettings,
    Run,
    changed_settings,
    figures_object,
    figures_of,
    settings_object,
    waits_object,
    waits_of,
)
from musterd.console.simulate.trace import Trace
from musterd.store.words import count_text, duration_text, plural, table, time_text

FIRST, SECOND = "present", "proposed"
NOT_KNOWN = "-"


@attrs.frozen
class Comparison:
    """Runs of one trace under the present settings and, if given, the proposed ones."""

    trace: Trace
    settings: Sequence[ModelSettings]
    runs: Sequence[Run]

    @property
    def span_seconds(self) -> float:
        return max(run.ended_seconds for run in self.runs)

    @property
    def figures(self) -> list[Figures]:
        pairs = zip(self.settings, self.runs, strict=True)
        found = [figures_of(self.trace, settings, run) for settings, run in pairs]
        return [one.over(self.span_seconds) for one in found]


def comparison_object(found: Comparison, tenant: str) -> dict[str, Any]:
    whole: dict[str, Any] = {"tenant": tenant, "trace": trace_object(found.trace), SECOND: None}
    runs = zip((FIRST, SECOND), found.settings, found.figures, strict=False)
    for name, settings, figures in runs:
        whole[name] = {"settings": settings_object(settings), **figures_object(figures)}
    changed = changed_settings(found.settings[0], found.settings[-1])
    whole["changed"] = {name: {"from": a, "to": b} for name, (a, b) in changed.items()}
    return whole


def trace_object(trace: Trace) -> dict[str, Any]:
    return {
        "begun_at": time_text(trace.begun_at),
        "span_seconds": trace.span_seconds,
        "attempts": len(trace),
        **waits_object(waits_of(trace.waits)),
        "due_unknown": trace.left_out.undue,
        "busy_most": trace.most_at_once,
        "busy_seconds": round(trace.busy_seconds, 6),
        "left_out": attrs.asdict(trace.left_out, filter=lambda field, _: field.name != "undue"),
    }


def comparison_lines(found: Comparison) -> list[str]:
    changed = changed_settings(found.settings[0], found.settings[-1])
    changes = [f"proposed: {name} {before} -> {after}" for name, (before, after) in changed.items()]
    blank = [""] if changes else []
    return [*trace_lines(found.trace), *blank, *changes, "", *_table(found), "", *_chart(found)]


def trace_lines(trace: Trace) -> list[str]:
    """What was read, and what could not be used."""
    begun = (time_text(trace.begun_at) or "")[:19].replace("T", " ")
    span = duration_text(trace.span_seconds)
    lines = [f"trace: {plural(len(trace), 'attempt')} in {span} from {begun}Z"]
    left = trace.left_out
    parts = (
        (left.running, "still running"),
        (left.waiting, "never started"),
        (left.unstarted, "whose start is not in the log"),
    )
    if said := ", ".join(f"{count_text(count)} {what}" for count, what in parts if count):
        lines.append(f"left out: {said}")
    if left.undue:
        count = plural(left.undue, "attempt")
        lines.append(f"the log does not say when {count} became due: assumed due at their start")
    if left.cut:
        lines.append("no more can be simulated at once: anything later was not read")
    return lines


_ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("crew mean", lambda one: f"{one.crew_mean:.1f}"),
    ("crew most", lambda one: str(one.crew_most)),
    ("worker-seconds", lambda one: count_text(round(one.worker_seconds))),
    ("idle", lambda one: f"{one.idle_share * 100:.0f} %"),
    ("hired", lambda one: count_text(one.hired)),
    ("retired", lambda one: count_text(one.retired)),
    ("turns per hour", lambda one: f"{one.turns_per_hour:.1f}"),
    ("longest queue", lambda one: count_text(one.longest_queue)),
)


def _table(found: Comparison) -> list[str]:
    shown, trace = found.figures, found.trace
    rows = [("attempts", *[count_text(len(trace))] * (len(shown) + 1))]
    for name, real in waits_of(trace.waits)._asdict().items():
        was = duration_text(real) if trace.waits else NOT_KNOWN
        waits = (duration_text(getattr(one.waits, name)) for one in shown)
        rows.append((f"wait {name}", was, *waits))
    busy = (count_text(one.busy_most) for one in shown)
    rows.append(("busy most", count_text(trace.most_at_once), *busy))
    rows += [(name, NOT_KNOWN, *(cell(one) for one in shown)) for name, cell in _ROWS]
    heads = ("", "as it was", *(FIRST, SECOND)[: len(shown)])
    return table(heads, rows, right=frozenset(range(1, len(heads))))


def _chart(found: Comparison) -> list[str]:
    shown, span = found.figures, found.span_seconds
    highest = max(one.crew_most for one in shown), max(one.longest_queue for one in shown)
    lines: list[str] = []
    for name, run in zip((FIRST, SECOND), found.runs, strict=False):
        lines += chart_lines(name, run, span, highest)
    return [*lines, scale_line(span)]


COLUMNS = 60


def chart_lines(name: str, run: Run, span_seconds: float, highest: tuple[int, int]) -> list[str]:
    """Crew and queue, each the maximum in a column's time. `highest`: values of a full block."""
    crew, queue = crew_columns(run, span_seconds), queue_columns(run, span_seconds)
    return [
        f"{name:<8} crew   {bars(crew, highest[0])}  most {max(crew)}",
        f"{'':<8} queue  {bars(queue, highest[1])}  most {max(queue)}",
    ]


def scale_line(span_seconds: float) -> str:
    end = duration_text(span_seconds)
    return f"{'':<8}        0{end:>{COLUMNS - 1}}"


def crew_columns(run: Run, span_seconds: float) -> list[int]:
    columns = [0] * COLUMNS
    ends = [at for at, _ in run.sizes[1:]] + [span_seconds]
    for (since, size), until in zip(run.sizes, ends, strict=True):
        first, last = _column(since, span_seconds), _column(until, span_seconds)
        columns[first : last + 1] = [max(size, one) for one in columns[first : last + 1]]
    return columns


def queue_columns(run: Run, span_seconds: float) -> list[int]:
    columns = [0] * COLUMNS
    for stretch, peak in enumerate(run.queue_peaks):
        column = _column(stretch * run.stretch_seconds, span_seconds)
        columns[column] = max(columns[column], peak)
    return columns


def _column(moment: float, span_seconds: float) -> int:
    if span_seconds <= 0:
        return 0
    return min(COLUMNS - 1, int(moment * COLUMNS / span_seconds))
