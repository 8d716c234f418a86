"""The page on the doctor tells each check, each exit code and the figures of the code."""

from musterd.console.doctor import postgres
from musterd.console.doctor.checks import FILE_SECONDS, PLACES_SECONDS
from musterd.console.doctor.verb import CHECK_SECONDS
from musterd.console.output import Exit
from musterd.store.words import count_text
from tests.support.findings import NAMES
from tests.support.pages import bare, page, prose, table

PAGE = page("doctor.md")


def test_every_check_is_told_in_order() -> None:
    assert [bare(name) for name, _ in table(PAGE, "check", "looks at")] == list(NAMES)


def test_its_exit_codes() -> None:
    told = [int(bare(code)) for code, _ in table(PAGE, "exit", "means")]
    assert told == [Exit.DONE, Exit.UNSUCCESSFUL, Exit.UNAVAILABLE, Exit.CONFIGURATION]


def test_the_figures_are_those_of_the_code() -> None:
    text = " ".join(prose(PAGE).split())
    assert (postgres.HELD_SECONDS, postgres.HELD_SECONDS_MAX) == (60.0, 3600.0)
    first = f"one minute or {count_text(postgres.HELD_TRANSACTIONS)} transactions"
    last = f"one hour or {count_text(postgres.HELD_TRANSACTIONS_MAX)} transactions"
    assert f"It warns from {first}, and fails from {last}" in text
    assert (CHECK_SECONDS, FILE_SECONDS, PLACES_SECONDS) == (10.0, 5.0, 5.0)
    assert "Each check has ten seconds" in text
