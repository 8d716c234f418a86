"""The page on running names every exit code and every trouble of the store."""

from musterd.console.output import Exit
from musterd.manager.node.status import TROUBLE_WORDS
from tests.support.pages import bare, page, table

PAGE = page("running.md")


def test_every_exit_code_is_told() -> None:
    assert [int(bare(code)) for code, _ in table(PAGE, "code", "meaning")] == list(Exit)


def test_every_trouble_is_told_in_its_words() -> None:
    heads = ("`TROUBLE`", "log, `status`, `/readyz` say")
    assert {bare(row[0]): row[1] for row in table(PAGE, *heads)} == TROUBLE_WORDS
