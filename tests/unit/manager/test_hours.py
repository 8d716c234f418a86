"""Bounds by the clock: when hours are in force, and what they make of a crew's bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.load import UnsoundSettings, load
from musterd.config.scaling import Hours
from musterd.config.show import as_text
from musterd.manager.scaling.decision import Memory, Plan, Situation, decide
from musterd.manager.scaling.hours import HoursClock, window_at, with_hours
from tests.support.traces import SHIPPED

DAY = Hours("day", "0 8 * * MON-FRI", 600, "Europe/Berlin", 4, None)


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("moment", "in_force", "until"),
    [
        ("2026-11-18T07:59:59+01:00", False, "2026-11-18T08:00:00+01:00"),
        ("2026-11-18T08:00:00+01:00", True, "2026-11-18T18:00:00+01:00"),
        ("2026-11-18T17:59:59+01:00", True, "2026-11-18T18:00:00+01:00"),
        ("2026-11-18T18:00:00+01:00", False, "2026-11-19T08:00:00+01:00"),
        ("2026-11-20T18:00:00+01:00", False, "2026-11-23T08:00:00+01:00"),
        ("2026-07-15T08:00:00+02:00", True, "2026-07-15T18:00:00+02:00"),
    ],
)
def test_hours_last_from_their_time_on_the_clock(moment: str, in_force: bool, until: str) -> None:
    found = window_at(DAY, at(moment))
    assert (found.in_force, found.until) == (in_force, at(until))


def test_hours_that_come_once_end_for_ever() -> None:
    leap = Hours("leap", "0 0 29 2 *", 60, "UTC", 4, None)
    assert window_at(leap, at("2026-01-01T00:00:00Z")).until == at("2028-02-29T00:00:00Z")
    assert HoursClock().next_change((), at("2026-01-01T00:00:00Z")) == inf


def hourly(minute: int, every: int, lasts: int) -> Hours:
    return Hours("h", f"{minute} */{every} * * *", lasts, "UTC", 1, None)


some_hours = st.builds(
    hourly, st.integers(0, 59), st.integers(1, 12), st.sampled_from([1, 20, 61, 300])
)
START = datetime(2026, 3, 28, tzinfo=UTC)


@given(some_hours, st.lists(st.integers(0, 3 * 86_400), min_size=1, max_size=40))
def test_what_a_clock_remembers_is_what_it_would_work_out(hours: Hours, seconds: list[int]) -> None:
    """Also when the time goes back."""
    clock = HoursClock()
    for one in seconds:
        now = (START + timedelta(seconds=one)).timestamp()
        fresh = window_at(hours, now)
        assert bool(clock.in_force([hours], now)) == fresh.in_force
        assert clock.next_change([hours], now) == fresh.until > now


def named(name: str, floor: int | None = None, ceiling: int | None = None) -> Hours:
    return Hours(name, "@daily", 60, "UTC", floor, ceiling)


def test_the_largest_floor_and_the_smallest_ceiling_count() -> None:
    found = with_hours(SHIPPED, [named("a", 3, 7), named("b", 5), named("c", 1, 6), named("d", 5)])
    assert (found.default_count, found.max_count) == (5, 6)
    assert (found.floor_by, found.ceiling_by) == ("b", "c")
    assert with_hours(SHIPPED, []) == SHIPPED
    night = with_hours(SHIPPED, [named("night", 0)])
    assert (night.default_count, night.floor_by) == (0, "night")
    assert with_hours(SHIPPED, [named("wide", None, 99)]).max_count == SHIPPED.max_count


def test_the_hours_that_decide_are_named() -> None:
    policy = with_hours(SHIPPED, [named("day", 4, 6)])
    assert decide(Situation(0, 1, 2), Memory(), policy, 0)[0] == Plan(1, 4, "hours:day")
    assert decide(Situation(30, 4, 4), Memory(), policy, 0)[0] == Plan(34, 6, "hours:day")
    assert decide(Situation(1, 4, 4), Memory(), policy, 0)[0] == Plan(5, 5, None)
    low = attrs.evolve(policy, max_running=2)
    assert decide(Situation(9, 0, 2), Memory(), low, 0)[0].limited_by == "max_running"
    both = with_hours(SHIPPED, [named("day", 6), named("thrifty", None, 3)])
    assert decide(Situation(0, 0, 3), Memory(), both, 0)[0] == Plan(0, 3, "hours:thrifty")


TABLE = """
[[scaling.hours]]
name = "day"
from = "0 8 * * MON-FRI"
for_minutes = 600
timezone = "Europe/Berlin"
default_count = 4
"""


def test_they_are_read_and_written_by_the_same_names(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text(TABLE)
    loaded = load(file, {}, [])
    assert loaded.settings.scaling.hours == (DAY,)
    (line,) = [one for one in as_text(loaded, origin=False).splitlines() if "hours = [" in one]
    again = tmp_path / "again.toml"
    again.write_text(f"[scaling]\n{line}\n")
    assert load(again, {}, []).settings.scaling.hours == (DAY,)


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('name = "day"\n', "", "scaling.hours.0: found no name, wanted one"),
        ('"0 8 * * MON-FRI"', '"0 25 * * *"', 'scaling.hours.0.from: found "0 25'),
        ("Europe/Berlin", "Europe/Berln", "did you mean Europe/Berlin?"),
        ("default_count = 4", "", "day has neither"),
        ("default_count = 4", "default_count = 9", "in day they are 9 and 8"),
        ("default_count = 4", "max_count = 1", "in day they are 2 and 1"),
        ("default_count = 4", "max_count = 9", "in day they are 2 and 9, and the node's 8"),
        ("default_count = 4", f"default_count = 4\n{TABLE}", "a name of its own"),
        ("default_count = 4", "default_count = 5\n[tenants.a]", "2 tenants in day have 10"),
        ("for_minutes = 600", "for_minute = 600", "unknown key - did you mean for_minutes?"),
    ],
)
def test_faults_are_told_where_they_are(
    before: str, after: str, fault: str, tmp_path: Path
) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text(TABLE.replace(before, after))
    with pytest.raises(UnsoundSettings) as caught:
        load(file, {}, [])
    assert fault in str(caught.value)
