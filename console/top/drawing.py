"""The screen, line by line: a state in, lines out, each of which fits. Pure."""

from __future__ import annotations

from musterd.console.top.cells import Line, Span, Style, fitted, line, span
from musterd.console.top.columns import COLUMNS, GAP, Column, shown_columns
from musterd.console.top.header import header
from musterd.console.top.sifting import HELP as FILTER_HELP
from musterd.console.top.state import Panel, State, layout
from musterd.store.board import BoardJob
from musterd.store.job import JobState
from musterd.store.words import count_text

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
    """Exactly as many lines as the terminal has rows, none wider than it."""
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
        mark = ""
        if state.sort >= 0 and COLUMNS[state.sort] is column:
            mark = "^" if state.reverse else "v"
        name = column.head[: cells - len(mark)] + mark
        heads.append(fitted(name, cells, right=column.right))
    return line([Span((" " * GAP).join(heads), "head")], state.size.columns, fill=True)


def _row(state: State, job: BoardJob, columns: list[tuple[Column, int]]) -> Line:
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
        said = f"  {state.message}" if state.message else f"  {FILTER_HELP}"
        parts = [span("filter: ", "prompt"), span(f"{state.typed}_"), span(said, "dim")]
        return line(parts, cells)
    if state.mode == "ask" and state.question is not None:
        return line([span(f"{state.question.text} y/n", "prompt")], cells)
    if state.message:
        return line([span(state.message, "prompt")], cells)
    if state.mode == "panel":
        return line([span("q goes back", "dim")], cells)
    parts = [span(part, style) for part, style in _hints(state)]
    return line(parts, cells)


def _hints(state: State) -> list[tuple[str, Style]]:
    found: list[tuple[str, Style]] = []
    if state.filter.text:
        found.append((f"filter: {state.filter.text}  ", "warn"))
    jobs = state.jobs
    if jobs:
        place = f"{count_text(state.place + 1)}/{count_text(len(jobs))}  "
        found.append((place, "plain"))
    for key, what in KEYS:
        found.append((key, "bold"))
        found.append((f" {what}  ", "dim"))
    return found
