"""What each key of `musterd top` does."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.console.top.key_bindings import ACTIONS, COMMANDS, HELP, MOVES, press
from musterd.console.top.state import (
    COLUMNS,
    ActOnJob,
    Command,
    Mode,
    OpenPanel,
    ScreenCommand,
    State,
    SwitchQueue,
    SwitchTenant,
    switched,
    with_store,
)
from musterd.store.lifecycle import Action
from tests.support.top_scene import overview_job, running, scene, seen


def after(state: State, *keys: str) -> tuple[State, list[Command]]:
    wishes: list[Command] = []
    for key in keys:
        state, wished = press(state, key)
        wishes += wished
    return state, wishes


def chosen(*keys: str) -> int | None:
    return after(scene(), *keys)[0].chosen


def test_the_cursor_moves_and_stops_at_the_ends() -> None:
    assert [chosen(*["down"] * count) for count in (0, 1, 4, 9)] == [7, 8, 11, 11]
    assert (chosen("j", "j", "k"), chosen("up"), chosen("end"), chosen("G", "g")) == (8, 7, 11, 7)
    assert (chosen("pgdn"), chosen("pgdn", "pgup"), chosen("end", "home")) == (11, 7, 7)


def test_a_page_is_what_is_seen_and_the_table_scrolls() -> None:
    many = [overview_job(number) for number in range(1, 101)]
    state = with_store(scene(80, 20), seen(101.0, *many))  # a table of twelve rows
    state, _ = after(state, "pgdn")
    assert (state.chosen, state.top) == (12, 0)
    state, _ = after(state, "down")
    assert (state.chosen, state.top) == (13, 1)
    state, _ = after(state, "end", "pgup")
    assert (state.chosen, state.top) == (89, 88)


def test_the_cursor_keeps_to_its_job_and_on_the_first_row_to_the_row() -> None:
    state, _ = after(scene(), "down")
    fewer = with_store(state, seen(101.0, running(6), running(7), overview_job(8)))
    assert (fewer.chosen, fewer.place) == (8, 2)
    gone = with_store(fewer, seen(102.0, running(6), running(7)))
    assert (gone.chosen, gone.place) == (7, 1)
    assert with_store(scene(), seen(101.0, running(3), running(7))).chosen == 3
    nobody = with_store(gone, attrs.evolve(seen(103.0), jobs=()))
    assert nobody.chosen is None


def test_cancelling_asks_first() -> None:
    state, wishes = after(scene(), "down", "c")
    assert (state.mode, wishes) == ("ask", [])
    assert state.question is not None
    assert state.question.text == "cancel job 8 (thumbnail, queued)?"
    moved = with_store(state, seen(101.0, overview_job(99), overview_job(8)))
    assert after(moved, "y")[1] == [ActOnJob(Action.CANCEL, 8)]  # the one it asked about
    left, nothing = after(state, "n")
    assert (left.mode, left.message, nothing) == ("table", "not done", [])
    assert after(state, "enter")[1] == []


def test_pausing_and_resuming_a_job_do_not() -> None:
    assert after(scene(), "p")[1] == [ActOnJob(Action.PAUSE, 7)]
    assert after(scene(), "end", "u")[1] == [ActOnJob(Action.RESUME, 11)]


@pytest.mark.parametrize("key", ["c", "p", "u", "w", "enter", "end", "pgdn"])
def test_where_there_is_no_job_nothing_happens(key: str) -> None:
    state, wishes = after(switched(scene(), "acme", "there"), key)
    assert (state.mode, wishes) == ("table", [])


def test_the_queue_is_paused_and_let_go_with_a_question() -> None:
    assert after(scene(), "P", "y")[1] == [SwitchQueue(pause=True)]
    paused = with_store(scene(), seen(101.0, paused_at=seen().now))
    assert after(paused, "P", "y")[1] == [SwitchQueue(pause=False)]
    assert after(scene(), "P", "q")[1] == []
    assert after(switched(scene(), "acme", "there"), "P")[0].mode == "table"


def test_sorting_goes_round_by_column() -> None:
    state = scene()
    seen_columns = [(state := after(state, ">")[0]).sort for _ in range(len(COLUMNS) + 1)]
    assert seen_columns == [*range(len(COLUMNS)), -1]
    assert after(scene(), "<")[0].sort == len(COLUMNS) - 1
    assert [job.id for job in after(scene(), "s", "r")[0].jobs] == [11, 10, 9, 8, 7]
    by_kind = [job.kind for job in after(scene(), "s", "s")[0].jobs]
    assert by_kind == sorted(by_kind)
    assert [job.id for job in after(scene(), "r")[0].jobs] == [11, 10, 9, 8, 7]


def test_a_filter_is_typed_and_looked_for_at_once() -> None:
    state, wishes = after(scene(), "/", *"state=failed", "enter")
    assert (state.mode, state.filter.text, wishes) == (
        "table",
        "state=failed",
        [ScreenCommand("look")],
    )
    assert [job.id for job in state.jobs] == [11]
    again, _ = after(state, "/", "ctrl-u", *"ab", "backspace", "enter")
    assert again.filter.words == ("a",)
    kept, none = after(state, "/", *"xyz", "esc")
    assert (kept.filter.text, none) == ("state=failed", [])
    assert after(state, "/", "ctrl-u", "enter")[0].filter.text == ""


def test_a_wrong_filter_stays_to_be_mended() -> None:
    state, wishes = after(scene(), "/", *"knd=x", "enter")
    assert (state.mode, state.typed, wishes) == ("filter", "knd=x", [])
    assert "knd= is unknown" in state.message


def test_panels_are_asked_for_scrolled_and_left() -> None:
    assert after(scene(), "w")[1] == [OpenPanel("why", 7)]
    assert after(scene(), "enter")[1] == [OpenPanel("details", 7)]
    state, _ = after(scene(80, 9), "h")
    assert state.panel is not None
    down, _ = after(state, "down", "down")
    assert down.panel is not None
    assert down.panel.top == 2
    end, _ = after(state, "end", "pgdn")
    assert end.panel is not None
    assert 0 < end.panel.top < len(HELP)
    for key in ("q", "esc", "enter"):
        assert after(end, key)[0].mode == "table"


def test_a_frozen_screen_stands_still_and_goes_on() -> None:
    state, _ = after(scene(), " ")
    assert with_store(state, seen(101.0, overview_job(99))).store is state.store
    awake, wishes = after(state, " ")
    assert (awake.is_frozen, wishes) == (False, [ScreenCommand("look")])


def test_tenants_follow_each_other() -> None:
    assert after(scene(), "t")[1] == [SwitchTenant("acme")]
    assert after(scene(tenant="acme"), "t")[1] == [SwitchTenant("default")]
    assert after(scene(tenants=("default",)), "t")[1] == []


@pytest.mark.parametrize("mode", ["table", "filter", "ask", "panel"])
def test_keys_of_the_terminal_itself_work_everywhere(mode: Mode) -> None:
    state = attrs.evolve(scene(), mode=mode)
    wanted = [("ctrl-c", "quit"), ("ctrl-z", "suspend"), ("ctrl-l", "redraw")]
    found = [press(state, key)[1] for key, _ in wanted]
    assert found == [(ScreenCommand(what),) for _, what in wanted]  # type: ignore[arg-type]  # names


def test_every_key_is_in_the_help() -> None:
    told = "  ".join(keys for keys, _ in HELP)
    known = {"home", "end", "pgup", "pgdn", "enter", " ", "up", "down"}
    for key in {*MOVES, *ACTIONS, *COMMANDS} - known:
        assert key in told, key


@given(st.lists(st.sampled_from([*MOVES, *ACTIONS, *COMMANDS, "y", "esc", "x", "del", "ü"])))
def test_no_keys_upset_it(keys: list[str]) -> None:
    state, _ = after(scene(), *keys)
    assert state.chosen in {job.id for job in state.jobs} | {None}
