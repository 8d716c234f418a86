"""The states of idleness: who may move it where, and who hears of it."""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from musterd.workers.idleness import Idleness, IdleState, Move

MOVES: dict[str, Callable[[Idleness], object]] = {
    "note_news": Idleness.note_news,
    "note_quiet": Idleness.note_quiet,
    "listen": Idleness.listen,
    "begin_scan": Idleness.begin_scan,
    "end_scan": Idleness.end_scan,
    "rest": lambda idleness: idleness.rest(has_nothing_to_do=True),
    "work": lambda idleness: idleness.rest(has_nothing_to_do=False),
}
# From each state, how to get there, and the moves that change it.
TABLE: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "active": ((), {"note_quiet": "quiet", "begin_scan": "scanned"}),
    "quiet": (
        ("note_quiet",),
        {"note_news": "active", "listen": "listening", "begin_scan": "scanned"},
    ),
    "listening": (("note_quiet", "listen"), {"note_news": "active", "begin_scan": "scanned"}),
    "scanned": (("begin_scan",), {"end_scan": "active", "rest": "resting"}),
    "resting": (("begin_scan", "rest"), {"end_scan": "active", "work": "scanned"}),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("state", TABLE)
async def test_a_move_leads_where_the_drawing_says(
    mock_clock: MockClock, state: str, move: str
) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    way, leads = TABLE[state]
    idleness = Idleness()
    for step in way:
        MOVES[step](idleness)
    assert idleness.state.value == state
    heard: list[Move] = []
    idleness.on_move(heard.append)
    MOVES[move](idleness)
    after = IdleState(leads.get(move, state))
    assert idleness.state is after
    assert [(one.before.value, one.after) for one in heard] == (
        [(state, after)] if move in leads else []
    )


async def test_news_is_heard_in_every_state(mock_clock: MockClock) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    for way, _ in TABLE.values():
        idleness, heard = Idleness(), list[str]()
        for step in way:
            MOVES[step](idleness)
        idleness.on_news(lambda heard=heard: heard.append("news"))  # type: ignore[misc]
        idleness.note_news()
        assert heard == ["news"]


async def test_a_rest_is_measured_until_it_ends(mock_clock: MockClock) -> None:
    idleness, heard = Idleness(), list[Move]()
    idleness.on_move(heard.append)
    await trio.lowlevel.checkpoint()
    idleness.begin_scan()
    assert idleness.rest(has_nothing_to_do=True)
    mock_clock.jump(40)
    assert idleness.rest(has_nothing_to_do=True)  # it goes on
    assert idleness.rested_seconds == pytest.approx(40)
    assert not idleness.rest(has_nothing_to_do=False)
    assert idleness.rested_seconds == 0
    assert heard[-1].rested_seconds == pytest.approx(40)
