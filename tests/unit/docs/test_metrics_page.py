"""The pages on metrics tell each metric that there is, with its type and labels, and no other."""

import re
from pathlib import Path

import pytest

from tests.support.metric_pages import NAME, alerts, exported, metrics_in, recorded
from tests.support.pages import DOCS, bare, blocks, codes, page, table

PAGE = page("metrics.md")
PAGES = sorted((DOCS / "metrics").glob("*.md"))
LINK = re.compile(r"\[(`\w+`)\]\(metrics/(\w+)\.md\)")
OWN = {name: what for name, what in exported().items() if name.startswith("musterd_")}

each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def told() -> dict[str, tuple[str, frozenset[str]]]:
    return {
        bare(LINK.sub(r"\1", name)): (kind, frozenset(codes(labels)))
        for section in PAGE.split("\n## ")[1:]
        if "| metric |" in section
        for name, kind, labels, *_ in table(section, "metric", "type", "labels")
    }


def test_each_metric_is_told_with_its_type_and_labels() -> None:
    assert told() == OWN


def test_what_the_page_says_of_the_process_is_exported() -> None:
    promised = {code for code in codes(PAGE) if code.startswith("process_")}
    assert promised == {name for name in exported() if name.startswith("process_")}


def test_each_metric_leads_to_a_page_of_its_own_and_no_page_is_left_over() -> None:
    linked = {bare(name): target for name, target in LINK.findall(PAGE)}
    assert linked == {name: name for name in OWN}
    assert {path.stem for path in PAGES} == set(OWN)


@each_page
def test_a_page_tells_type_labels_and_what_to_do(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith(f"# {path.stem}\n")
    ((kind, labels, _),) = table(text, "type", "labels", "exported by")
    assert (kind, frozenset(codes(labels))) == OWN[path.stem]
    for part in ("How it is counted", "Normal", "When to act"):
        assert text.count(f"**{part}.** ") == 1, part
    (query,) = blocks(text, "promql")
    assert path.stem in metrics_in(query.text)


@each_page
def test_a_page_names_the_alerts_that_look_at_its_metric(path: Path) -> None:
    looking = {name for name, rule in alerts().items() if path.stem in metrics_in(rule["expr"])}
    text = path.read_text("utf-8")
    (line,) = re.findall(
        r"^Alerts: (.*) \[All metrics\]\(\.\./metrics\.md\)\.$", text, re.MULTILINE
    )
    assert set(re.findall(r"\[(\w+)\]\(\.\./runbooks/\1\.md\)", line)) == looking
    assert line == "none." or looking


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_metrics_that_are_named_anywhere_are_there(path: Path) -> None:
    text = path.read_text("utf-8")
    known = {*OWN, *(f"{name}_{part}" for name in OWN for part in ("bucket", "count", "sum"))}
    named = set(re.findall(r"(?<![:\w])musterd_[a-z_]+_(?:seconds|total|ratio|bytes|info)\b", text))
    assert named <= known
    assert set(re.findall(r"\b\w+:musterd_\w+:\w+", text)) <= set(recorded())


def test_the_name_of_a_metric_is_told_from_that_of_a_recording_rule() -> None:
    assert NAME.findall("sum(musterd_jobs) / job:musterd_jobs:rate5m") == ["musterd_jobs"]
