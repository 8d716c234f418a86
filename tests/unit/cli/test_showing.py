"""What a person sees while something goes on."""

import io

import attrs
import pytest

from musterd.console.output import LiveLine
from musterd.console.verbs.status import crew_bar, live_status, status_line
from musterd.manager.scaling.model.figures import quantile
from tests.support.web_scene import STATUS


def test_the_status_line_of_a_healthy_node() -> None:
    assert status_line(STATUS) == "2/8 workers · 1 busy · 2 due · 5 done"


def test_the_status_line_names_trouble_and_drain() -> None:
    seen = attrs.evolve(
        STATUS,
        phase="draining",
        drain_seconds_left=12.0,
        depth=None,
        store_trouble="disk_full",
        store_trouble_seconds=3.0,
    )
    parts = status_line(seen).split(" · ")
    assert (parts[0], parts[3]) == ("draining, 12.0 s left", "? due")
    assert parts[-1] == "store disk full for 3.0 s"


def test_the_crew_bar_shows_busy_idle_and_not_hired() -> None:
    assert crew_bar(3, 1, 6) == "■■■□··"
    assert crew_bar(3, 1, 1000) == ""
    assert live_status(STATUS).startswith("■□······ 2/8 workers")


def test_lines_pass_above_the_live_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "12")
    terminal = io.StringIO()
    live = LiveLine(terminal)
    live.show("0123456789abcdef")
    live.write("a line\n")
    live.done()
    shown = "0123456789…"
    assert terminal.getvalue() == f"\r\x1b[K{shown}\r\x1b[Ka line\n{shown}\r\x1b[K"


@pytest.mark.parametrize(
    ("values", "percent", "wanted"),
    [([], 50, 0), ([7], 95, 7), ([3, 1, 2], 50, 2), (list(range(1, 101)), 95, 95)],
)
def test_percentiles(values: list[float], percent: int, wanted: float) -> None:
    assert quantile(sorted(values), percent / 100) == wanted
