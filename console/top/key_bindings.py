"""What each key does: a state and a key in, a state and commands out. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs

from musterd.console.top.state import (
    COLUMNS,
    FILTER_HELP,
    ActOnJob,
    Command,
    OpenPanel,
    Panel,
    Question,
    ScreenCommand,
    State,
    SwitchQueue,
    SwitchTenant,
    layout,
    read_filter,
    settled,
)
from musterd.store.lifecycle import Action
from musterd.store.words import one_line

Step = tuple[State, tuple[Command, ...]]
TYPED_MAX = 200
SCREEN_COMMANDS = {
    "ctrl-c": ScreenCommand("quit"),
    "ctrl-z": ScreenCommand("suspend"),
    "ctrl-l": ScreenCommand("redraw"),
}

HELP = (
    ("arrows, j, k", "move by a row; PgUp and PgDn by a page"),
    ("g, G", "to the first row, to the last; also Home and End"),
    ("> or s, <", "sort by the next, the previous column; r reverses the order"),
    ("/", f"filter: {FILTER_HELP}; empty shows all again"),
    ("Enter", "show the job's report"),
    ("w", "show why the job does not run"),
    ("c", "cancel the job; asks first"),
    ("p, u", "pause, resume the job"),
    ("P", "pause or resume the whole queue; asks first"),
    ("t", "the next tenant"),
    ("Space", "freeze the screen, or continue"),
    ("h, ?", "this help"),
    ("q, Ctrl-C", "quit"),
)


def press(state: State, key: str) -> Step:
    """Never raises, whatever the key."""
    if key in SCREEN_COMMANDS:
        return state, (SCREEN_COMMANDS[key],)
    return MODES[state.mode](attrs.evolve(state, message=""), key)


def help_panel() -> Panel:
    width = max(len(keys) for keys, _ in HELP)
    return Panel("keys", tuple(f"{keys:<{width}}  {what}" for keys, what in HELP))


def _in_table(state: State, key: str) -> Step:
    key = ALIASES.get(key, key)
    if key in MOVES:
        return settled(state, MOVES[key](state)), ()
    if key in ACTIONS:
        return _act_on_chosen(state, key)
    return COMMANDS[key](state) if key in COMMANDS else (state, ())


def _page(state: State) -> int:
    return max(1, layout(state.size).table - 1)


ALIASES = {"k": "up", "j": "down", "g": "home", "G": "end"}  # where nothing is typed
MOVES: dict[str, Callable[[State], int]] = {
    "up": lambda state: state.place - 1,
    "down": lambda state: state.place + 1,
    "pgup": lambda state: state.place - _page(state),
    "pgdn": lambda state: state.place + _page(state),
    "home": lambda _: 0,
    "end": lambda state: len(state.jobs) - 1,
}
ACTIONS = {"c": Action.CANCEL, "p": Action.PAUSE, "u": Action.RESUME}


def _act_on_chosen(state: State, key: str) -> Step:
    job = next((one for one in state.jobs if one.id == state.chosen), None)
    if job is None:
        return attrs.evolve(state, message="no job is chosen"), ()
    command = ActOnJob(ACTIONS[key], job.id)
    if command.action is not Action.CANCEL:
        return state, (command,)
    return _ask(state, f"cancel job {job.id} ({one_line(job.kind)}, {job.state.value})?", command)


def _ask(state: State, text: str, command: Command) -> Step:
    return attrs.evolve(state, mode="ask", question=Question(text, command)), ()


def _sorted(step: int) -> Callable[[State], Step]:
    def sort(state: State) -> Step:
        column = (state.sort + 1 + step) % (len(COLUMNS) + 1) - 1
        name = COLUMNS[column].head or "remark"
        message = "in the order of claims" if column < 0 else f"sorted by {name}"
        return settled(attrs.evolve(state, sort=column, message=message)), ()

    return sort


def _switch_queue(state: State) -> Step:
    if state.store is None:
        return attrs.evolve(state, message="the queue has not been read yet"), ()
    if state.store.counts.paused_at is not None:
        return _ask(state, f"resume the queue of {state.tenant}?", SwitchQueue(pause=False))
    text = f"pause the whole queue of {state.tenant}? no node takes a further job"
    return _ask(state, text, SwitchQueue(pause=True))


def _next_tenant(state: State) -> Step:
    if not set(state.tenants) - {state.tenant}:
        return attrs.evolve(state, message="there is only one tenant"), ()
    place = state.tenants.index(state.tenant) if state.tenant in state.tenants else -1
    return state, (SwitchTenant(state.tenants[(place + 1) % len(state.tenants)]),)


def _freeze(state: State) -> Step:
    if state.is_frozen:
        return attrs.evolve(state, is_frozen=False), (ScreenCommand("look"),)
    return attrs.evolve(state, is_frozen=True), ()


def _show_help(state: State) -> Step:
    return attrs.evolve(state, mode="panel", panel=help_panel()), ()


def _open(state: State, what: Literal["why", "details"]) -> Step:
    return state, () if state.chosen is None else (OpenPanel(what, state.chosen),)


COMMANDS: dict[str, Callable[[State], Step]] = {
    "s": _sorted(1),
    ">": _sorted(1),
    "<": _sorted(-1),
    "r": lambda state: (settled(attrs.evolve(state, reverse=not state.reverse)), ()),
    "/": lambda state: (attrs.evolve(state, mode="filter", typed=state.filter.text), ()),
    "w": lambda state: _open(state, "why"),
    "enter": lambda state: _open(state, "details"),
    "P": _switch_queue,
    "t": _next_tenant,
    " ": _freeze,
    "h": _show_help,
    "?": _show_help,
    "q": lambda state: (state, (ScreenCommand("quit"),)),
}


def _in_filter(state: State, key: str) -> Step:
    if key == "enter":
        return _end_filter(state)
    if key == "esc":
        return attrs.evolve(state, mode="table", typed=""), ()
    typed = state.typed
    if len(key) == 1:
        typed = (typed + key)[:TYPED_MAX]
    elif key in ("backspace", "ctrl-u"):
        typed = typed[:-1] if key == "backspace" else ""
    return attrs.evolve(state, typed=typed), ()


def _end_filter(state: State) -> Step:
    try:
        found = read_filter(state.typed)
    except ValueError as error:
        return attrs.evolve(state, message=str(error)), ()
    state = attrs.evolve(state, mode="table", typed="", filter=found, is_frozen=False)
    return settled(state, 0), (ScreenCommand("look"),)


def _in_question(state: State, key: str) -> Step:
    question = state.question
    state = attrs.evolve(state, mode="table", question=None)
    if key in ("y", "Y") and question is not None:
        return state, (question.command,)
    return attrs.evolve(state, message="not done"), ()


def _in_panel(state: State, key: str) -> Step:
    panel = state.panel
    if panel is None or key in ("q", "esc", "enter", "w", "h", "?"):
        return attrs.evolve(state, mode="table", panel=None), ()
    page = _page(state)
    steps = {"up": -1, "down": 1, "pgup": -page, "pgdn": page, " ": page}
    steps |= {"home": -panel.top, "end": len(panel.lines)}
    last = max(0, len(panel.lines) - page)
    top = min(max(0, panel.top + steps.get(ALIASES.get(key, key), 0)), last)
    return attrs.evolve(state, panel=attrs.evolve(panel, top=top)), ()


MODES: dict[str, Callable[[State, str], Step]] = {
    "table": _in_table,
    "filter": _in_filter,
    "ask": _in_question,
    "panel": _in_panel,
}
