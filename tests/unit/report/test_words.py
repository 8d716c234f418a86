"""Times, counts and foreign texts as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.store.words import count_text, cut, duration_text, one_line, plural, table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 ms"),
        (0.0042, "4.2 ms"),
        (0.0099, "9.9 ms"),
        (0.00999, "10 ms"),
        (0.2, "200 ms"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 m"),
        (310, "5 m 10 s"),
        (3600, "1 h"),
        (9000, "2 h 30 m"),
        (86400 * 2 + 3 * 3600, "2 d 3 h"),
    ],
)
def test_a_duration_in_the_units_that_say_something(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_counts() -> None:
    assert (count_text(1234567), plural(1, "job"), plural(2000, "job")) == (
        "1,234,567",
        "1 job",
        "2,000 jobs",
    )
    assert plural(2, "try", "tries") == "2 tries"


@given(st.text())
def test_a_foreign_text_becomes_one_printable_line(text: str) -> None:
    assert one_line(text).isprintable()


def test_a_terminal_is_never_given_a_command() -> None:
    assert one_line("a\x1b[2Jb\n\u202ec\ud800") == "a\\x1b[2Jb\\n\\u202ec\\ud800"


def test_what_is_too_long_is_cut() -> None:
    assert (cut("abcd", 4), cut("abcde", 4)) == ("abcd", "abc…")


def test_columns_are_aligned_and_lines_end_where_their_text_ends() -> None:
    rows = [("7", "a", "x"), ("123", "bb", "")]
    assert table(("id", "k", "t"), rows, right=frozenset({0})) == [
        " id  k   t",
        "  7  a   x",
        "123  bb",
    ]
