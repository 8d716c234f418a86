"""What the phases of a job are called, and how far it has come: for every case there is."""

from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.store.lifecycle import JobState
from musterd.store.phases import PhaseRecord, PhaseState, made_whole, rounded, share_percent
from musterd.store.report import current, overall
from tests.support.records import job_record

NOW = datetime(2030, 1, 1, tzinfo=UTC)
STORED = (PhaseState.PENDING, PhaseState.RUNNING, PhaseState.FAILED, PhaseState.SUCCEEDED)
# Of a job in each state: what its phases are called that are stored as pending, running, failed,
# succeeded.
SHOWN = {
    JobState.PENDING: "pending pending pending succeeded",
    JobState.QUEUED: "pending pending pending succeeded",
    JobState.ASSIGNED: "pending running pending succeeded",
    JobState.RUNNING: "pending running pending succeeded",
    JobState.PAUSED: "pending pending pending succeeded",
    JobState.SUCCEEDED: "succeeded succeeded succeeded succeeded",
    JobState.FAILED: "pending failed failed succeeded",
    JobState.CANCELED: "canceled canceled canceled succeeded",
}
JOB = job_record(kind="video", state=JobState.RUNNING, attempt=1)


@pytest.mark.parametrize("state", list(JobState))
def test_the_state_of_a_phase_follows_from_that_of_its_job(state: JobState) -> None:
    stored = [PhaseRecord(each.value, each, 40.0, '"r"', 1) for each in STORED]
    whole = made_whole(stored, state)
    assert " ".join(phase.state for phase in whole) == SHOWN[state]
    by_state = {PhaseState.SUCCEEDED: 100.0, PhaseState.PENDING: 0.0}
    assert [phase.progress for phase in whole] == [
        by_state.get(phase.state, 40.0) for phase in whole
    ]
    # Only what has finished has a result.
    assert [phase.result for phase in whole] == [None, None, None, '"r"']


def test_three_phases_at_50_25_and_80_percent() -> None:
    told = [rounded(share_percent(place, at, 3)) for place, at in enumerate((50.0, 25.0, 80.0))]
    assert told == [17, 42, 93]


@given(st.integers(1, 100), st.data())
def test_overall_is_the_share_of_the_phases_rounded_half_up(
    count: int, data: st.DataObject
) -> None:
    finished = data.draw(st.integers(0, count - 1))
    percent = data.draw(st.integers(0, 400)) / 4  # quarters: halves of the whole can be met
    exact = (Fraction(finished) * 100 + Fraction(percent)) / count
    wanted = (exact + Fraction(1, 2)).__floor__()
    got = rounded(share_percent(finished, percent, count))
    # What lies closer to a half than a float can tell may go either way.
    assert got == wanted or abs(exact - wanted + Fraction(1, 2)) < Fraction(1, 10**9)
    assert 0 <= got <= 100
    if finished < count - 1:
        assert share_percent(finished, percent, count) <= share_percent(finished + 1, 0.0, count)


@given(st.integers(1, 30), st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_overall_never_goes_back_and_is_100_only_at_the_end(
    count: int, percents: list[float]
) -> None:
    told = [
        rounded(share_percent(place, percent, count))
        for place in range(count)
        for percent in sorted(percents)
    ]
    assert all(before <= after for before, after in pairwise(told))
    phases = tuple(
        PhaseRecord(str(number), PhaseState.SUCCEEDED, 100.0, None, 1)
        for number in range(count - 1)
    )
    last = PhaseRecord("last", PhaseState.RUNNING, 0.0, None, 1)
    under_way = attrs.evolve(JOB, progress=told[0], phases=(*phases, last))
    assert overall(under_way) < 100 or told[0] == 100
    assert overall(attrs.evolve(under_way, state=JobState.SUCCEEDED)) == 100


def test_a_job_whose_attempt_has_just_begun_has_come_as_far_as_what_is_finished() -> None:
    done = PhaseRecord("a", PhaseState.SUCCEEDED, 100.0, None, 1)
    rest = PhaseRecord("b", PhaseState.PENDING, 0.0, None, 1)
    assert overall(attrs.evolve(JOB, progress=None, phases=(done, rest))) == 50
    assert overall(attrs.evolve(JOB, progress=80.0, phases=(done, rest))) == 80


def test_the_current_phase_is_the_first_that_is_not_finished_once_one_was_begun() -> None:
    begun = PhaseRecord("a", PhaseState.SUCCEEDED, 100.0, None, 1)
    later = PhaseRecord("b", PhaseState.PENDING, 0.0)
    assert current(attrs.evolve(JOB, phases=(begun, later))) == "b"
    assert current(attrs.evolve(JOB, phases=(attrs.evolve(begun, attempts=0), later))) is None
    assert current(attrs.evolve(JOB, phases=(begun,))) is None
    assert current(JOB) is None
