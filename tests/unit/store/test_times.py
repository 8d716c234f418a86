"""How people write times: one reader for all verbs and routes."""

from datetime import UTC, datetime

import pytest

from musterd.store.times import future_of, past_of

NOW = datetime(2030, 5, 6, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("03:12", datetime(2030, 5, 6, 3, 12, tzinfo=UTC)),
        ("07:30", NOW),
        ("07:31", datetime(2030, 5, 5, 7, 31, tzinfo=UTC)),
        ("23:59:58.5", datetime(2030, 5, 5, 23, 59, 58, 500_000, tzinfo=UTC)),
        ("03:12Z", datetime(2030, 5, 6, 3, 12, tzinfo=UTC)),
        ("03:12+02:00", datetime(2030, 5, 6, 1, 12, tzinfo=UTC)),
        ("09:29+02:00", datetime(2030, 5, 6, 7, 29, tzinfo=UTC)),
        ("00:10+02:00", datetime(2030, 5, 5, 22, 10, tzinfo=UTC)),
        ("-2h", datetime(2030, 5, 6, 5, 30, tzinfo=UTC)),
        ("2h", datetime(2030, 5, 6, 5, 30, tzinfo=UTC)),
        ("-90s", datetime(2030, 5, 6, 7, 28, 30, tzinfo=UTC)),
        (" -1d ", datetime(2030, 5, 5, 7, 30, tzinfo=UTC)),
        ("2030-01-01T09:00:00+01:00", datetime(2030, 1, 1, 8, tzinfo=UTC)),
        ("2031-01-01 09:00:00Z", datetime(2031, 1, 1, 9, tzinfo=UTC)),
    ],
)
def test_times_that_lie_behind(text: str, found: datetime) -> None:
    assert past_of(text, NOW) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("03:12", datetime(2030, 5, 7, 3, 12, tzinfo=UTC)),
        ("07:31", datetime(2030, 5, 6, 7, 31, tzinfo=UTC)),
        ("2030-01-01T09:00:00Z", datetime(2030, 1, 1, 9, tzinfo=UTC)),
    ],
)
def test_times_that_lie_ahead(text: str, found: datetime) -> None:
    assert future_of(text, NOW) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "is no time: write 03:12, -2h or 2030-01-01T09:00:00Z"),
        ("", "is no time"),
        ("3:12", "is no time"),
        ("25:00", "is no time of a day"),
        ("-2x", "is not a delay"),
        ("--2h", "is no time"),
        ("2030-01-01", "is no RFC 3339 time"),
        ("2030-01-01T09:00:00", "has no zone"),
        ("-40000d", "more than a hundred years"),
    ],
)
def test_other_texts_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        past_of(text, NOW)


def test_what_lies_ahead_is_no_time_ago() -> None:
    with pytest.raises(ValueError, match="write 03:12 or 2030"):
        future_of("-2h", NOW)
