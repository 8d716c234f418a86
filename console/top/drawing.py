"""The screen: a state in, fitting lines out; a snapshot as text or JSON. Pure."""

from __future__ import annotations

from datetime import datetime

import attrs

from musterd.console.output import Exit, bars
from musterd.console.top.state import (
    COLUMNS,
    FILTER_HELP,
    GAP,
    Column,
    NodeAnswer,
    Panel,
    State,
    layout,
    resized,
    shown_columns,
)
from musterd.console.top.terminal import Line, Size, Span, Style, fitted, line, plain, span
from musterd.console.verbs.status import crew_bar, due_text, judge, states_text, tenant_on_node
from musterd.manager.node.status import counts_object, decision_text
from musterd.store.lifecycle import JobState
from musterd.store.nodes import node_object
from musterd.store.overview import OverviewJob
from musterd.store.words import count_text, one_line, plural, time_text

KEYS = (
    *(("/", "filter"), ("s", "sort"), ("c", "cancel"), ("p", "pause"), ("u", "resume")),
    *(("w", "why"), ("Enter", "report"), ("P", "queue"), ("?", "help"), ("q", "quit")),
)
STYLES: dict[JobState, Style] = {
    JobState.RUNNING: "busy",
    JobState.ASSIGNED: "busy",
    JobState.FAILED: "bad",
    JobState.PAUSED: "warn",
    JobState.CANCELED: "warn",
    JobState.SUCCEEDED: "good",
}


def draw(state: State) -> list[Line]:
    """As many lines as the terminal has rows, none wider than it."""
    if state.size.columns <= 0 or state.size.rows <= 0:
        return []
    parts = layout(state.size)
    body = parts.heads + parts.table
    drawn = header(state)
    if state.mode == "panel" and state.panel is not None:
        drawn += _panel(state.panel, state.size.columns, body)
    else:
        drawn += _table(state, parts.table, heads=bool(parts.heads))
    drawn = drawn[: state.size.rows - parts.footer]
    drawn += [()] * (state.size.rows - parts.footer - len(drawn))
    return [*drawn, _footer(state)] if parts.footer else drawn


def _table(state: State, rows: int, *, heads: bool) -> list[Line]:
    cells = state.size.columns
    if state.store is None:
        return [line([span("waiting for the store …", "dim")], cells)]
    jobs = state.jobs
    shown = jobs[state.top : state.top + rows]
    columns = shown_columns(shown, state.store.now, cells, state.sort)
    drawn = [_heads(state, columns)] if heads else []
    drawn += [_row(state, job, columns) for job in shown]
    if not jobs and rows:
        what = "no such jobs" if state.filter.text else "no jobs"
        drawn.append(line([span(what, "dim")], cells))
    return drawn


def _heads(state: State, columns: list[tuple[Column, int]]) -> Line:
    heads: list[str] = []
    for column, cells in columns:
        is_sorted_by = state.sort >= 0 and COLUMNS[state.sort] is column
        mark = ("^" if state.reverse else "v") if is_sorted_by else ""
        heads.append(fitted(column.head[: cells - len(mark)] + mark, cells, right=column.right))
    return line([Span((" " * GAP).join(heads), "head")], state.size.columns, fill=True)


def _row(state: State, job: OverviewJob, columns: list[tuple[Column, int]]) -> Line:
    assert state.store is not None
    now = state.store.now
    cells = [fitted(one.cell(job, now), wide, right=one.right) for one, wide in columns]
    if job.id == state.chosen:
        return line([Span((" " * GAP).join(cells), "chosen")], state.size.columns, fill=True)
    style = STYLES.get(job.state, "plain")
    parts: list[Span] = []
    for (column, _), text in zip(columns, cells, strict=True):
        parts.append(Span(text, style if column.head == "STATE" else "plain"))
        parts.append(Span(" " * GAP))
    return line(parts[:-1], state.size.columns)


def _panel(panel: Panel, cells: int, rows: int) -> list[Line]:
    if rows <= 0:
        return []
    shown = panel.lines[panel.top : panel.top + rows - 1]
    more = len(panel.lines) - panel.top - len(shown)
    hint = f"  {count_text(more)} more lines" if more > 0 else ""
    title = line([span(f"{panel.title}{hint}", "head")], cells, fill=True)
    return [title, *(line([span(text)], cells) for text in shown)]


def _footer(state: State) -> Line:
    cells = state.size.columns
    if state.mode == "filter":
        said = f"  {state.message or FILTER_HELP}"
        parts = [span("filter: ", "prompt"), span(f"{state.typed}_"), span(said, "dim")]
    elif state.mode == "ask" and state.question is not None:
        parts = [span(f"{state.question.text} y/n", "prompt")]
    elif state.message:
        parts = [span(state.message, "prompt")]
    elif state.mode == "panel":
        parts = [span("q goes back", "dim")]
    else:
        parts = _hints(state)
    return line(parts, cells)


def _hints(state: State) -> list[Span]:
    found = [span(f"filter: {state.filter.text}  ", "warn")] if state.filter.text else []
    if jobs := state.jobs:
        found.append(span(f"{count_text(state.place + 1)}/{count_text(len(jobs))}  "))
    for key, what in KEYS:
        found += [span(key, "bold"), span(f" {what}  ", "dim")]
    return found


LABEL_WIDTH = 7
HEADER_STATES = (
    *(JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING, JobState.PENDING),
    *(JobState.PAUSED, JobState.FAILED),
)


def header(state: State) -> list[Line]:
    """As many lines as fit; the most important ones stay longest."""
    count = layout(state.size).header
    if count == 0:
        return []
    lines = [_verdict_line(state), _queue_line(state), _crew_line(state)]
    if count > len(lines):
        lines = [_title_line(state), *lines, _nodes_line(state), _trend_line(state)]
    return [line(spans, state.size.columns) for spans in lines[:count]]


def verdict(state: State) -> tuple[Exit, str]:
    """As `musterd status` gives it."""
    if state.trouble is None and (state.node is None or state.store is None):
        return Exit.DONE, "looking …"
    said = state.node or NodeAnswer(None)
    tenant, where = state.tenant, state.where
    return judge(tenant, where, state.trouble, said.whole, said.silence, state.listens)


def sparkline(values: list[int], cells: int) -> str:
    """The newest values as bars, the highest one full."""
    shown = values[-cells:] if cells > 0 else []
    return bars(shown, max(shown, default=0))


def _title_line(state: State) -> list[Span]:
    parts = [span("musterd top", "bold"), span(f"  tenant {state.tenant}  {state.where}", "dim")]
    if state.store is not None:
        parts.append(span(f"  {state.store.now:%H:%M:%S}Z", "dim"))
    if state.is_frozen:
        parts.insert(1, span("  FROZEN", "warn"))
    return parts


def _verdict_line(state: State) -> list[Span]:
    code, words = verdict(state)
    mood = span("healthy", "good") if code is Exit.DONE else span("NOT healthy", "bad")
    return [mood, span(f": {words}")]


def _labelled(name: str, *parts: Span) -> list[Span]:
    return [span(f"{name:<{LABEL_WIDTH}}", "dim"), *parts]


def _queue_line(state: State) -> list[Span]:
    if state.store is None:
        return _labelled("queue", span("not read yet"))
    counts = state.store.counts
    parts = [span(due_text(counts, " due"))]
    if counts.paused_at is not None:
        parts.insert(0, span(f"PAUSED by {counts.paused_by or 'somebody'}", "warn"))
        parts.insert(1, span(" · "))
    if state.rates is not None:
        parts.append(span(f" · in {state.rates[0]:.1f}/s, out {state.rates[1]:.1f}/s"))
    said = states_text(counts, HEADER_STATES)
    return _labelled("queue", *parts, span(f" · {said}" if said else "", "dim"))


def _crew_line(state: State) -> list[Span]:
    whole = None if state.node is None else state.node.whole
    crew = tenant_on_node(whole, state.tenant, state.where)
    if crew is None:
        return _labelled("crew", span("no daemon on this machine serves this queue", "dim"))
    busy = crew["busy"] + crew["retiring"]
    bar = crew_bar(busy, crew["idle"], crew["max_count"])
    size = f"{busy + crew['idle']} of {crew['max_count']}"
    parts = [span(f"[{bar}] " if bar else "", "busy"), span(size)]
    decision = None if state.node is None else state.node.decision
    if decision is not None:
        paused = state.store is not None and state.store.counts.paused_at is not None
        parts.append(span(f" · {one_line(decision_text(decision, paused=paused))}", "dim"))
    return _labelled("crew", *parts)


def _nodes_line(state: State) -> list[Span]:
    if state.store is None:
        return _labelled("nodes", span("not read yet"))
    nodes = state.store.nodes
    live = [node for node in nodes if node.is_live]
    parts = [span(plural(len(live), "node") if live else "no node is alive")]
    workers = sum(node.crew for node in live)
    if live:
        busy = sum(node.busy for node in live)
        parts.append(span(f", {plural(workers, 'worker')}, {count_text(busy)} busy"))
    leaving = [node.name for node in live if node.phase == "draining"]
    dead = [node.name for node in nodes if not node.is_live]
    for names, word in ((leaving, "draining"), (dead, "silent")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            parts.append(span(f" · {word}: {names[0]}{more}", "warn"))
    return _labelled("nodes", *parts)


def _trend_line(state: State) -> list[Span]:
    room = state.size.columns - LABEL_WIDTH
    values = [sample.due for sample in state.samples]
    most = f" {count_text(max(values[-room:]))} at most" if values and room > 0 else ""
    return _labelled("due", span(sparkline(values, room - len(most)), "busy"), span(most, "dim"))


TEXT_COLUMNS = 200  # where no terminal says how wide it is


def snapshot_lines(state: State) -> list[str]:
    """All rows, whatever the height of a terminal."""
    rows = len(state.jobs) + sum(layout(Size(TEXT_COLUMNS, 100))) - layout(Size(1, 100)).table
    whole = resized(attrs.evolve(state, chosen=None), Size(TEXT_COLUMNS, max(rows, 20)))
    drawn = [plain(one) for one in draw(attrs.evolve(whole, chosen=None))[:-1]]
    while drawn and not drawn[-1]:
        drawn.pop()
    return drawn


def snapshot_object(state: State) -> dict[str, object]:
    code, words = verdict(state)
    seen = state.store
    node = None if state.node is None or state.node.whole is None else state.node.whole["node"]
    return {
        "healthy": code is Exit.DONE,
        "verdict": words,
        "tenant": state.tenant,
        "store": {"where": state.where, "error": state.trouble},
        "at": None if seen is None else time_text(seen.now),
        "counts": None if seen is None else counts_object(seen.counts),
        "node": node,
        "nodes": [] if seen is None else [node_object(one) for one in seen.nodes],
        "jobs": [job_brief(one) for one in state.jobs],
    }


BRIEF = (
    *("id", "kind", "state", "target", "priority", "attempt", "created_at", "run_at"),
    *("started_at", "finished_at", "node", "worker", "request", "progress"),
)


def job_brief(job: OverviewJob) -> dict[str, object]:
    """Uses the names of the job object."""
    values = {name: getattr(job, name) for name in BRIEF}
    times = {name: time_text(at) for name, at in values.items() if isinstance(at, datetime)}
    return {
        **values,
        **times,
        "waits_for_kind": job.parked,
        "waits_for_target": job.behind,
        "remark": one_line(job.remark),
    }
