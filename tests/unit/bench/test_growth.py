"""Rows of a benchmark become a table and a plot in the docs."""

import json
from pathlib import Path
from xml.etree import ElementTree

import attrs
import pytest

from tests.bench.growth.cases import CASES
from tests.bench.growth.figures import Figures, Row, Size, in_turns
from tests.bench.growth.telling import STORIES, last_runs, rates, table
from tests.bench.plots import BEGIN, END, PAGE, PLOTS, plot, told_in_page

FIRST = Row("depth", "1,000 queued", 1000, [30_000.0, 31_000.0, 29_000.0], 15.0, 20.0)
SECOND = Row("depth", "2 < 3 queued", 3, [15_000.0], 15.0, 27.0, 20_000.0, 2.5)
HOW = {"run": 1, "taken": "then", "commit": "abc", "machine": "2 cores", "scale": 1.0}


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A file with an earlier run, and the last one."""
    path = tmp_path / "rows"
    earlier = [{**HOW, **attrs.asdict(attrs.evolve(FIRST, label="earlier"))}]
    rows = [{**HOW, "run": 2, **attrs.asdict(row)} for row in (FIRST, SECOND)]
    path.write_text("\n".join(json.dumps(line) for line in earlier + rows))
    return path


def test_sizes_take_turns_and_their_medians_are_told() -> None:
    said: list[str] = []
    left = {"a": [3.0, 1.0, 2.0], "b": [30.0, 20.0, 10.0]}

    def measured(name: str) -> Figures:
        said.append(name)
        return Figures(left[name].pop(), 1.0, 2.0)

    sizes = [Size("a", 1, lambda: measured("a")), Size("b", 2, lambda: measured("b"))]
    rows = list(in_turns("case", sizes, 3))
    assert said == ["a", "b"] * 3
    assert [row.rate for row in rows] == [2.0, 20.0]


def test_the_last_run_of_a_case_is_told(told: Path) -> None:
    (run,) = last_runs(told)
    assert run.rows == [FIRST, SECOND]
    head, _, first, second = table(run)
    assert head.startswith("|  | jobs/s |")
    assert "30,000 (29,000 to 31,000) | 1.00 | 15.0 µs | 20.0 µs | 1.00" in first
    assert "15,000 | 0.50 | 15.0 µs | 27.0 µs | 1.20 | 0.750" in second
    assert rates(SECOND) == "15,000"


def test_a_plot_has_a_bar_for_each_row(told: Path) -> None:
    (run,) = last_runs(told)
    drawn = ElementTree.fromstring(plot(run))
    bars = [each for each in drawn if each.tag.endswith("rect")]
    words = [each.text for each in drawn if each.tag.endswith("text")]
    assert len(bars) == 2 + 2 * 3  # of the legend; of each row one, and one of two parts
    assert {"2 < 3 queued", "30,000", "42.0 µs"} <= set(words)
    longest, half = (float(bar.get("width", 0)) for bar in bars[:2])
    assert half == pytest.approx(longest / 2, abs=0.1)


def test_the_page_takes_new_runs_for_old_ones(told: Path) -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = told_in_page(page, last_runs(told))
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert "plots/growth-depth.svg" in once
    assert told_in_page(once, last_runs(told)) == once
    with pytest.raises(SystemExit, match="found no"):
        told_in_page("", [])


def test_each_case_has_its_story_and_the_page_its_place() -> None:
    assert list(CASES) == list(STORIES)
    assert all((PLOTS / f"growth-{case}.svg").is_file() for case in CASES)
    assert told_in_page(PAGE.read_text(), [])
