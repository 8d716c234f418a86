"""The page on `musterd top` tells every key and the numbers of the program."""

from musterd.console.top.key_bindings import HELP
from musterd.console.top.state import JOBS_SCANNED, JOBS_SHOWN, RATE_SECONDS, SAMPLES_MAX
from tests.support.pages import bare, page, table

PAGE = page("top.md")


def test_every_key_is_told_as_in_the_help() -> None:
    rows = table(PAGE, "keys", "what they do")
    assert [(bare(keys), what) for keys, what in rows] == list(HELP)


def test_the_numbers_are_those_of_the_program() -> None:
    text = PAGE.replace("\n", " ")
    assert f"of each of these groups {JOBS_SHOWN} jobs are shown" in text
    assert f"first {JOBS_SCANNED:,} of each are looked through" in text
    assert (RATE_SECONDS, SAMPLES_MAX) == (10, 120)
    assert "over the last ten seconds" in text
    assert "over the last two minutes" in text
