"""The head of the screen: is it healthy, what waits, how large is the crew and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from musterd.console.exits import Exit
from musterd.console.judging import Answers, judge, served
from musterd.console.top.cells import Line, Span, line, span
from musterd.console.top.state import State, layout
from musterd.store.job import Counts, JobState
from musterd.store.words import count_text, duration_text, one_line, plural

BAR_CELLS_MAX = 40
BARS = "▁▂▃▄▅▆▇█"
NAME = 7
SHOWN_STATES = (
    *(JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING, JobState.PENDING),
    *(JobState.PAUSED, JobState.FAILED),
)


def header(state: State) -> list[Line]:
    """As many lines as there is room for, the most telling ones first to stay."""
    count = layout(state.size).header
    if count == 0:
        return []
    verdict, queue, crew = _verdict(state), _queue(state), _crew(state)
    lines = [_title(state), verdict, queue, crew, _nodes(state), _trend(state)]
    if count < len(lines):
        lines = [verdict, queue, crew][:count]
    return [line(spans, state.size.columns) for spans in lines]


def judged(state: State) -> tuple[Exit, str]:
    """The verdict, as `musterd status` gives it."""
    if state.trouble is not None:
        return judge(Answers(state.tenant, state.where, state.trouble, None, "", state.listens))
    if state.node is None or state.store is None:
        return Exit.DONE, "looking …"
    node, silence = state.node.whole, state.node.silence
    return judge(Answers(state.tenant, state.where, None, node, silence, state.listens))


def spark(values: list[int], cells: int) -> str:
    """The newest values as bars, the highest one full; nothing is no bar."""
    shown = values[-cells:] if cells > 0 else []
    most = max(shown, default=0)
    return "".join(" " if not one else BARS[-(-one * len(BARS) // most) - 1] for one in shown)


def crew_cells(crew: Mapping[str, Any]) -> str:
    """A full cell a busy worker, a hollow one an idle one, a dot for each not hired."""
    if crew["max_count"] > BAR_CELLS_MAX:
        return ""
    busy = crew["busy"] + crew["retiring"]
    unhired = max(0, crew["max_count"] - busy - crew["idle"])
    return f"[{'■' * busy}{'□' * crew['idle']}{'·' * unhired}]"


def _title(state: State) -> list[Span]:
    parts = [span("musterd top", "bold"), span(f"  tenant {state.tenant}  {state.where}", "dim")]
    if state.store is not None:
        parts.append(span(f"  {state.store.now:%H:%M:%S}Z", "dim"))
    if state.is_frozen:
        parts.insert(1, span("  FROZEN", "warn"))
    return parts


def _verdict(state: State) -> list[Span]:
    code, words = judged(state)
    mood = span("healthy", "good") if code is Exit.DONE else span("NOT healthy", "bad")
    return [mood, span(f": {words}")]


def _row(name: str, *parts: Span) -> list[Span]:
    return [span(f"{name:<{NAME}}", "dim"), *parts]


def _queue(state: State) -> list[Span]:
    if state.store is None:
        return _row("queue", span("not seen yet"))
    counts = state.store.counts
    parts = [span(_due(counts))]
    if counts.paused_at is not None:
        parts.insert(0, span(f"PAUSED by {counts.paused_by or 'somebody'}", "warn"))
        parts.insert(1, span(" · "))
    if state.rates is not None:
        parts.append(span(f" · in {state.rates[0]:.1f}/s, out {state.rates[1]:.1f}/s"))
    numbers = [(one, counts.by_state.get(one, 0)) for one in SHOWN_STATES]
    said = ", ".join(f"{count_text(number)} {one.value}" for one, number in numbers if number)
    return _row("queue", *parts, span(f" · {said}" if said else "", "dim"))


def _due(counts: Counts) -> str:
    oldest = f", the oldest for {duration_text(counts.oldest_due_seconds)}" if counts.due else ""
    return f"{count_text(counts.due)} due{oldest}"


def _crew(state: State) -> list[Span]:
    whole = None if state.node is None else state.node.whole
    crew = served(whole, state.tenant, state.where)
    if crew is None:
        return _row("crew", span("no daemon of this machine serves this queue", "dim"))
    size = crew["idle"] + crew["busy"] + crew["retiring"]
    cells = crew_cells(crew)
    parts = [span(f"{cells} " if cells else "", "busy"), span(f"{size} of {crew['max_count']}")]
    decision = None if state.node is None else state.node.decision
    if decision is not None:
        from musterd.manager.node.objects import decision_text

        parts.append(span(f" · {one_line(decision_text(decision))}", "dim"))
    return _row("crew", *parts)


def _nodes(state: State) -> list[Span]:
    if state.store is None:
        return _row("nodes", span("not seen yet"))
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
    return _row("nodes", *parts)


def _trend(state: State) -> list[Span]:
    room = state.size.columns - NAME
    values = [sample.due for sample in state.samples]
    most = f" {count_text(max(values[-room:]))} at most" if values and room > 0 else ""
    return _row("depth", span(spark(values, room - len(most)), "busy"), span(most, "dim"))
