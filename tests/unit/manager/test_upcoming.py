"""Slots that are about to come: which are seen, and what `latency` makes of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.cron import Every, read_cron, read_zone
from musterd.config.schedules import Schedule
from musterd.manager.scaling.decision import Situation, wish_of
from musterd.manager.scaling.latency import Promises, Work
from musterd.manager.scaling.upcoming import NO_JOB, SLOTS_MAX, SlotClock
from musterd.store.estimate import Service
from musterd.store.queue import Line, Waiting
from tests.support.traces import SHIPPED

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC).timestamp()
HOURLY = Schedule(
    "hourly", "report", "{}", read_cron("0 * * * *", read_zone("UTC")), None, None, "once",
    "allow", "default", True, "here",
)  # fmt: skip
OFTEN = attrs.evolve(HOURLY, name="often", kind="ping", rhythm=Every(0.5))


def test_a_slot_is_seen_within_the_horizon_and_not_before() -> None:
    clock, both = SlotClock(), {"hourly": HOURLY}
    assert clock.within(both, START, 3_599) == []
    assert clock.within(both, START + 1, 3_599) == [Waiting("report", 1, NO_JOB, -3_599)]
    assert clock.within(both, START + 3_600, 1) == [], "it has come: the store has its job"
    off = {"hourly": attrs.evolve(HOURLY, enabled=False)}
    assert clock.within(off, START + 3_599, 1) == []


def test_all_slots_are_seen_in_their_order() -> None:
    clock = SlotClock()
    found = clock.within({"hourly": HOURLY, "often": OFTEN}, START + 3_598.8, 1.6)
    assert sorted((one.kind, round(-one.waited_seconds, 3)) for one in found) == [
        ("ping", 0.2), ("ping", 0.7), ("ping", 1.2), ("report", 1.2),
    ]  # fmt: skip
    assert len(clock.within({"often": OFTEN}, START, 10_000)) == SLOTS_MAX


@given(st.lists(st.floats(0, 20_000), max_size=30), st.floats(0.5, 4_000))
def test_what_a_clock_remembers_is_what_it_would_work_out(
    moments: list[float], horizon: float
) -> None:
    """Also when the time goes back."""
    clock, schedules = SlotClock(), {"hourly": HOURLY}
    for seconds in moments:
        now = START + seconds
        found = clock.within(schedules, now, horizon)
        assert found == SlotClock().within(schedules, now, horizon)
        for one in found:
            assert 0 < -one.waited_seconds <= horizon + 1e-6
            slot = datetime.fromtimestamp(now, UTC) + timedelta(seconds=-one.waited_seconds)
            assert abs(slot.minute * 60 + slot.second + slot.microsecond / 1e6) % 3_600 < 0.001 or (
                slot.minute == 59
            )


TIMES = {"report": Service(500, 2.0, 0.0), "ping": Service(500, 0.001, 0.0)}
LATENCY = attrs.evolve(
    SHIPPED, policy="latency", default_count=0, max_count=64, promises=Promises(1.5)
)


def test_a_slot_counts_as_a_delayed_job_does() -> None:
    """Twenty pings are due; in half a second a report comes, which takes longer than is promised
    to the report after it.
    """
    due = Line([Waiting("ping", 20, 20, 0.0)])
    slots = [Waiting("report", 1, NO_JOB, -0.5)] * 3
    alone = Situation(20, 0, 0, work=Work(due, times=TIMES))
    assert wish_of(alone, LATENCY).because == "drain"
    found = wish_of(attrs.evolve(alone, work=Work(due, times=TIMES, slots=slots)), LATENCY)
    delayed = Line([*due.waiting, Waiting("report", 3, 23, -0.5)])
    same = wish_of(attrs.evolve(alone, work=Work(delayed, times=TIMES)), LATENCY)
    assert (found.because, found.decided_by) == ("upcoming", ("report", NO_JOB))
    assert found.workers == same.workers == 3


@given(st.integers(0, 5), st.integers(0, 30), st.floats(-1.0, -0.01))
def test_slots_never_make_it_wish_for_more_than_demand(slots: int, due: int, soon: float) -> None:
    line = Line([Waiting("report", due, due, 0.5)] if due else [])
    work = Work(line, times=TIMES, slots=[Waiting("report", 1, NO_JOB, soon)] * slots)
    seen = Situation(due, 0, 0, work=work)
    without = Situation(due, 0, 0, work=Work(line, times=TIMES))
    wishes = [wish_of(one, LATENCY).workers or 0 for one in (without, seen)]
    assert wishes[0] <= wishes[1] <= due


def test_the_slack_is_told_under_each_policy() -> None:
    line = Line([Waiting("ping", 1, 1, 0.5), Waiting("report", 1, 2, 2.0)])
    for policy in ("demand", "depth", "latency"):
        found = wish_of(
            Situation(2, 0, 0, work=Work(line, times=TIMES)), attrs.evolve(LATENCY, policy=policy)
        )
        assert found.slack_seconds == -0.5
        blind = wish_of(Situation(2, 0, 0), attrs.evolve(LATENCY, policy=policy))
        assert blind.slack_seconds is None
