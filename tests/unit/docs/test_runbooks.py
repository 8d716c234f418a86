"""Each alert has a runbook, each runbook its alert, and what it says to type can be typed."""

import re
from pathlib import Path

import pytest

from musterd.console.command import musterd
from tests.support.metric_pages import alerts
from tests.support.pages import DOCS, ROOT, bare, codes, page, table

FOLDER = DOCS / "runbooks"
BOOKS = sorted(path for path in FOLDER.glob("*.md") if path.stem != "README")
PARTS = ("How bad is it", "First look", "Causes and remedies", "When to silence it")
VERB = re.compile(r"(?:^|\s)musterd ([a-z]+)\b")

each_book = pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)


def test_each_alert_leads_to_its_runbook_and_no_book_is_left_over() -> None:
    led = {name: rule["annotations"]["runbook"] for name, rule in alerts().items()}
    assert led == {name: f"docs/runbooks/{name}.md" for name in led}
    assert {path.relative_to(ROOT).as_posix() for path in BOOKS} == set(led.values())


def test_the_list_has_each_alert_with_its_severity() -> None:
    rows = table(page("runbooks/README.md"), "alert", "severity")
    listed = {re.sub(r"\[(\w+)\]\(\1\.md\)", r"\1", name): severity for name, severity, _ in rows}
    assert listed == {name: rule["labels"]["severity"] for name, rule in alerts().items()}


@each_book
def test_a_book_has_all_of_its_parts(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith(f"# {path.stem}\n")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == PARTS
    assert re.search(r"^```sh\n", text, re.MULTILINE)
    assert text.count("\n- **") >= 2


@each_book
def test_the_commands_of_a_book_are_there(path: Path) -> None:
    text = path.read_text("utf-8")
    typed = [*re.findall(r"^musterd .*$", text, re.MULTILINE), *map(bare, codes(text))]
    verbs = {verb for line in typed for verb in VERB.findall(line)}
    assert verbs <= musterd.commands.keys()
