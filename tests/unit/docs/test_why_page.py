"""The page on `why` tells every reason, every key, and the figures of the code."""

from musterd.store.reasons import Code
from musterd.store.why_facts import LINE_BOUND
from musterd.web.api.openapi import WHY
from tests.support.pages import bare, codes, page, table

PAGE = page("why.md")


def test_every_reason_is_told_in_order() -> None:
    told = [bare(code) for code, *_ in table(PAGE, "code", "means", "what to do")]
    assert told == [code.value for code in Code]


def test_every_key_is_told() -> None:
    told = [key for cell, _ in table(PAGE, "key", "is") for key in codes(cell)]
    assert told == WHY["required"]


def test_the_figures_are_those_of_the_code() -> None:
    assert f"At most {LINE_BOUND:,} jobs are counted" in PAGE
