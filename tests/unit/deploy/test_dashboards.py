"""The dashboards are what their source makes, fit together, and lead to pages that there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import attrs
import pytest

from deploy.grafana.source.boards import BOARDS
from deploy.grafana.source.draw import DOCS_AT, drawn
from deploy.grafana.source.shape import Board, Panel, Section
from tests.support.grafana import FILES, FOLDER, asked, dashboards, panels
from tests.support.pages import DOCS, page, table

UNITS = {"short", "s", "ops", "percentunit", "bytes"}
VARIABLES = {"datasource", "job", "instance", "tenant", "kind", "docs"}
# The addresses of the dashboards in Grafana: people keep links to them.
UIDS = {f"musterd-{name}" for name in ("overview", "scaling", "faults", "store", "tenants")}
RUNBOOKS = DOCS / "runbooks"

each = pytest.mark.parametrize("dashboard", dashboards(), ids=lambda one: str(one["uid"]))


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_the_committed_file_is_what_the_source_makes(board: Board) -> None:
    """`make dashboards` writes them anew."""
    assert (FOLDER / board.file).read_text("utf-8") == drawn(board)


def test_there_are_these_and_no_others() -> None:
    assert {file.stem for file in FILES} == {board.uid for board in BOARDS} == UIDS
    titles = [dashboard["title"] for dashboard in dashboards()]
    assert len(set(titles)) == len(titles)


@each
def test_each_panel_has_a_number_and_a_title_of_its_own(dashboard: dict[str, Any]) -> None:
    assert doubles(panel["id"] for panel in dashboard["panels"]) == []
    assert doubles(panel["title"] for panel in dashboard["panels"]) == []


@each
def test_no_panel_covers_another_or_leaves_the_page(dashboard: dict[str, Any]) -> None:
    places = {panel["title"]: panel["gridPos"] for panel in dashboard["panels"]}
    assert all(at["x"] + at["w"] <= 24 for at in places.values())
    covered = [(a, b) for a, b in combinations(places, 2) if overlap(places[a], places[b])]
    assert not covered


@each
def test_each_panel_says_what_it_tells_and_in_what_unit(dashboard: dict[str, Any]) -> None:
    for panel in panels(dashboard):
        says = panel["description"].partition("\n")[0]
        assert says.endswith((".", "?")), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        legends = [target["legendFormat"] for target in panel["targets"]]
        assert panel["type"] == "stat" or "__auto" not in legends, panel["title"]


@each
def test_everything_asks_the_source_that_was_chosen(dashboard: dict[str, Any]) -> None:
    asking = [*panels(dashboard), *dashboard["annotations"]["list"]]
    asking += [target for panel in panels(dashboard) for target in panel["targets"]]
    asking += [one for one in dashboard["templating"]["list"] if one["type"] == "query"]
    assert {one["datasource"]["uid"] for one in asking} == {"${datasource}"}
    assert {one["name"] for one in dashboard["templating"]["list"]} == VARIABLES


@each
def test_queries_are_asked_with_the_choices_of_the_page(dashboard: dict[str, Any]) -> None:
    for query in asked(dashboard):
        series = re.findall(r"\w+\{([^}]*)\}", query.expr)
        assert series, query.place
        assert all('job=~"$job"' in one for one in series), query.place
        assert "[5m]" not in query.expr, f"{query.place}: a span that does not follow the page"


@each
def test_links_lead_to_pages_that_there_are(dashboard: dict[str, Any]) -> None:
    pages = {
        link["url"].removeprefix("${docs}/")
        for panel in panels(dashboard)
        for link in panel.get("links", [])
    }
    assert pages
    missing = {name for name in pages if not (DOCS / name).is_file()}
    assert not {name for name in missing if RUNBOOKS.is_dir() or "runbooks/" not in name}


def test_the_page_tells_of_each_dashboard_and_each_panel() -> None:
    told = page("dashboards.md")
    rows = table(told, "dashboard", "file", "shows")
    assert {(row[0], row[1]) for row in rows} == {
        (one["title"].removeprefix("musterd: "), f"`{one['uid']}.json`") for one in dashboards()
    }
    named = {
        found for row in table(told, "you see", "on") for found in re.findall(r"\*(.+?)\*", row[1])
    }
    assert named <= {panel["title"] for one in dashboards() for panel in panels(one)}
    assert f"`{DOCS_AT}`" in told


def test_a_line_of_panels_has_to_be_full() -> None:
    board, panel = BOARDS[0], Panel("a", "Says.", ())
    for widths, said in (((8, 8), "the last line has 16"), ((16, 16), "panels of 32 in a line")):
        wide = tuple(attrs.evolve(panel, width=width) for width in widths)
        with pytest.raises(ValueError, match=said):
            drawn(attrs.evolve(board, sections=(Section("b", wide),)))


def doubles(values: Iterator[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "w"), ("y", "h"))
    )
