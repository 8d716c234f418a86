"""The screen of `musterd top`: what stands where, at any size, whatever the jobs are called."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.console.top.drawing import draw, snapshot_lines, snapshot_object, sparkline
from musterd.console.top.key_bindings import help_panel
from musterd.console.top.state import (
    Filter,
    Mode,
    NodeAnswer,
    Question,
    State,
    read_filter,
    settled,
    switched,
    with_store,
)
from musterd.console.top.terminal import CLEAR, Painter, Size, cut, fitted, line, plain, span, width
from musterd.store.lifecycle import JobState
from musterd.store.overview import OverviewFilter
from tests.support.top_scene import HOSTILE, counts, overview_job, running, scene, seen


def shown(state: State) -> list[str]:
    return [plain(one) for one in draw(state)]


def test_the_whole_screen() -> None:
    lines = shown(scene(100, 14))
    assert lines[:6] == [
        "musterd top  tenant default  sqlite:////x.db  12:00:00Z",
        "healthy: running for 1 m 1 s",
        "queue  4 due, the oldest for 3.2 s · 4 queued, 1 running",
        "crew   [■□······] 2 of 8 · 3 -> 8  hired 5  (9 due, 3 busy: wished 12, held by max)",
        "nodes  1 node, 2 workers, 1 busy",
        "due    █ 4 at most",
    ]
    assert lines[6:12] == [
        "ID KIND      TARGET STATE     TIME TRY DONE WORKER",
        " 7 report           running  2.0 s   1 42 % 3@north page 3",
        " 8 thumbnail shop   queued   5.0 s   0",
        " 9 thumbnail shop   behind   5.0 s   0",
        "10 report           paused   9.0 s   0",
        "11 report           failed  0.0 ms   0              Boom: x",
    ]
    assert lines[12] == ""
    assert lines[13].startswith("1/5  / filter  s sort  c cancel")


@pytest.mark.parametrize("columns", [0, 1, 2, 5, 10, 20, 39, 80, 300])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 8, 9, 13, 14, 60])
@pytest.mark.parametrize("mode", ["table", "filter", "ask", "panel"])
def test_every_line_fits_whatever_the_size(columns: int, rows: int, mode: Mode) -> None:
    asked = Question("really?", ...)  # type: ignore[arg-type]  # nobody answers
    state = attrs.evolve(scene(columns, rows), mode=mode, panel=help_panel(), question=asked)
    drawn = draw(state)
    assert len(drawn) == (rows if columns else 0)
    assert all(sum(width(one.text) for one in each) <= columns for each in drawn)


@pytest.mark.parametrize("columns", [20, 60, 200])
def test_hostile_names_reach_no_terminal(columns: int) -> None:
    job = running(1, kind=HOSTILE, target=HOSTILE, node=HOSTILE, note=HOSTILE)
    ill = overview_job(2, state=JobState.FAILED, error=HOSTILE, reason=HOSTILE)
    state = with_store(scene(columns), seen(101.0, job, ill, paused_by=HOSTILE))
    state = attrs.evolve(state, tenant=HOSTILE, message=HOSTILE, trouble=HOSTILE)
    for mode in ("table", "filter"):
        drawn = draw(attrs.evolve(state, mode=mode, typed=HOSTILE))
        assert all(one.text.isprintable() for each in drawn for one in each)
    assert all(each.isprintable() for each in snapshot_lines(state))


@given(st.text(max_size=30), st.integers(0, 40))
def test_a_fitted_text_takes_exactly_its_cells(words: str, cells: int) -> None:
    assert width(fitted(words, cells)) == cells
    assert width(fitted(words, cells, right=True)) == cells
    assert fitted(words, cells).isprintable()


def test_wide_characters_take_two_cells_and_marks_none() -> None:
    assert [width(one) for one in ("a", "日", "é", "e\u0301", "\uff57")] == [1, 2, 1, 1, 2]
    assert (cut("日本語", 5), cut("日本語", 4), cut("日本語", 6)) == ("日本…", "日…", "日本語")
    assert plain(line([span("日本"), span("語x")], 5)) == "日本…"


def test_columns_give_way_on_a_narrow_terminal() -> None:
    heads = {wide: shown(scene(wide, 20))[6].split() for wide in (100, 40, 20, 12)}
    assert heads[40] == ["ID", "KIND", "STATE", "TIME", "TRY", "DONE"]
    assert heads[20] == ["ID", "KIND", "STATE"]
    assert heads[12] == ["ID", "STATE"]


def test_the_chosen_row_and_the_order_are_marked() -> None:
    state = settled(scene(sort=0, reverse=True))
    drawn = draw(state)
    assert drawn[6][0].style == "head"
    assert drawn[6][0].text.startswith("ID^")
    assert [each[0].style for each in drawn[7:9]] == ["chosen", "plain"]


def test_what_is_not_known_yet_is_said() -> None:
    empty = switched(scene(), "acme", "sqlite:////acme.db")
    lines = shown(empty)
    assert lines[1] == "healthy: looking …"
    assert "waiting for the store …" in lines
    away = attrs.evolve(empty, trouble="cannot be reached")
    assert shown(away)[1] == "NOT healthy: the store is not available: cannot be reached"


def test_a_silent_daemon_and_a_paused_queue_are_said() -> None:
    state = with_store(scene(), seen(101.0, paused_by="me", paused_at=seen().now))
    state = attrs.evolve(state, node=NodeAnswer(None, "no daemon answers at x"))
    lines = shown(state)
    assert lines[1] == "NOT healthy: no daemon answers at x; start one with `musterd run`"
    assert lines[2].startswith("queue  PAUSED by me · 4 due")
    assert lines[3] == "crew   no daemon on this machine serves this queue"


def test_rates_count_what_came_and_what_ended() -> None:
    state = scene()
    assert state.rates is None
    done = counts(enqueued_total=30, by_state={JobState.QUEUED: 5, JobState.FAILED: 3})
    state = with_store(state, attrs.evolve(seen(105.0), counts=done))
    assert state.rates == (4.0, 4.0)  # 20 came in 5 s, and 25 have ended where it was 5
    assert "in 4.0/s, out 4.0/s" in shown(state)[2]
    late = with_store(state, attrs.evolve(seen(200.0), counts=done))
    assert late.rates == (0.0, 0.0)


def test_the_trend_is_drawn_to_its_highest() -> None:
    assert sparkline([0, 1, 4, 8], 10) == " ▁▄█"
    assert sparkline([9, 0, 0], 2) == "  "
    assert (sparkline([], 5), sparkline([1], 0)) == ("", "")


def test_the_crew_is_drawn_before_its_size() -> None:
    assert any("[■□······] 2 of 8" in plain(one) for one in draw(scene()))


def test_only_what_changed_is_written() -> None:
    painter = Painter(colour=True, encoding="utf-8")
    state = scene(100, 14)
    first = painter.paint(draw(state)).decode()
    assert first.startswith(CLEAR)
    assert painter.paint(draw(state)) == b""
    said = painter.paint(draw(attrs.evolve(state, message="done"))).decode()
    assert said == "\x1b[14;1H\x1b[K\x1b[1mdone\x1b[0m\x1b[0m"
    painter.forget()
    assert painter.paint(draw(state)).decode() == first


def test_no_colour_and_no_unicode_where_there_is_none() -> None:
    bare = Painter(colour=False, encoding="ascii").paint(draw(scene())).decode("ascii")
    assert "[#o......]" in bare
    assert not [code for code in ("31m", "32m", "33m", "36m") if code in bare]
    assert "\x1b[32m" in Painter(colour=True, encoding="UTF-8").paint(draw(scene())).decode()


def test_a_snapshot_has_every_row_and_no_keys() -> None:
    many = [overview_job(number) for number in range(1, 301)]
    lines = snapshot_lines(with_store(scene(), seen(101.0, *many)))
    assert len(lines) == 7 + 300
    assert lines[-1].lstrip().startswith("300 report")
    assert "filter" not in lines[-1]


def test_a_snapshot_is_one_object() -> None:
    found = snapshot_object(scene())
    assert (found["healthy"], found["verdict"]) == (True, "running for 1 m 1 s")
    jobs = found["jobs"]
    assert isinstance(jobs, list)
    assert jobs[0]["progress"] == 42.0


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("", OverviewFilter(bound=200, span=200)),
        ("state=failed", OverviewFilter((JobState.FAILED,), bound=200, span=200)),
        ("kind=a  target=b", OverviewFilter(kind="a", target="b", bound=200, span=2000)),
    ],
)
def test_a_filter_asks_the_store_for_no_more_than_it_needs(
    typed: str, wanted: OverviewFilter
) -> None:
    assert read_filter(typed).wanted == wanted


def test_words_of_a_filter_stand_anywhere_in_a_row() -> None:
    found = [job.id for job in scene(filter=read_filter("BOOM")).jobs]
    assert found == [11]
    assert [job.id for job in scene(filter=read_filter("state=queued,paused")).jobs] == [8, 9, 10]
    assert [job.id for job in scene(filter=read_filter("target=shop kind=thumbnail 9")).jobs] == [9]
    assert scene(filter=Filter("x", words=("nothing",))).jobs == []


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("state=faild", "there is no state 'faild': did you mean failed?"),
        ("knd=x", "knd= is unknown"),
        ("kind=", "kind= needs a value"),
        ("state=", "there is no state ''"),
    ],
)
def test_a_filter_that_means_nothing_says_why(typed: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refused:
        read_filter(typed)
    assert str(refused.value).startswith(said)


def test_a_table_scrolls_with_its_cursor() -> None:
    many = [overview_job(number) for number in range(1, 101)]
    state = with_store(scene(80, 14), seen(101.0, *many))
    assert state.size == Size(80, 14)
    assert shown(state)[7].split()[0] == "1"
