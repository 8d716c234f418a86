"""The policy `latency`: what it wishes for, and the laws that hold for whatever is to be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musterd.manager.scaling import latency
from musterd.manager.scaling.decision import Others, ScalingPolicy, Situation, raw_wish, wish_of
from musterd.manager.scaling.latency import MEASURED_RUNS, Promises, WantedCrew, Work
from musterd.manager.scaling.model import line
from musterd.manager.scaling.model.simulation import Run, simulate
from musterd.manager.scaling.service_times import SMOOTHING_SECONDS, Arrivals
from musterd.store.estimate import Service
from musterd.store.queue import Line, Waiting
from tests.support.scale import scaled
from tests.support.traces import SHIPPED, promising, trace_of

QUICK, SLOW = Service(500, 0.005, 0.0), Service(500, 2.0, 0.0)
TIMES = {"quick": QUICK, "slow": SLOW}
POLICY = attrs.evolve(
    SHIPPED, policy="latency", default_count=0, max_count=64, promises=Promises(2.0)
)


def line_of(*waiting: tuple[str, int, float]) -> Line:
    """Of (kind, number, waited); ids count up from 1."""
    last, found = 0, list[Waiting]()
    for kind, number, waited in waiting:
        last += number
        found.append(Waiting(kind, number, last, waited))
    return Line(found)


def seen(work: Work, others: Others = Others()) -> Situation:  # noqa: B008 - frozen
    due = sum(one.number for one in work.waiting if one.waited_seconds >= 0)
    return Situation(due, len(work.in_hand), len(work.in_hand), others, work=work)


def wish(work: Work, policy: ScalingPolicy = POLICY) -> WantedCrew:
    return wish_of(seen(work), policy)


def test_the_work_before_a_job_is_done_within_what_is_left_of_its_promise() -> None:
    burst = Work(line_of(("quick", 601, 0.5)), times=TIMES)
    assert wish(burst) == WantedCrew(ceil(600 * 0.005 / 1.5), "drain", ("quick", 601), 1.5)
    behind = Work(line_of(("slow", 4, 0.0), ("quick", 1, 0.0)), times=TIMES)
    assert wish(behind).decided_by == ("quick", 5)
    assert wish(behind).workers == 4


def test_what_is_left_of_jobs_in_hand_is_work_too() -> None:
    line = line_of(("quick", 1, 1.0))
    assert wish(Work(line, [("slow", 1.5)] * 2, TIMES)).workers == 1  # done in time
    assert wish(Work(line, [("slow", 0.5)] * 2, TIMES)).workers == 3


def test_a_job_that_lasts_longer_than_another_may_wait_keeps_one_worker_from_it() -> None:
    times = {"hour": Service(9, 3600.0, 0.0), **TIMES}
    in_hand = [("hour", 60.0)] * 3
    burst = line_of(("quick", 601, 0.5))
    assert wish(Work(burst, in_hand, times)).workers == 3 + ceil(600 * 0.005 / 1.5)
    behind = line_of(("hour", 2, 0.5), ("quick", 601, 0.5))
    assert wish(Work(behind, in_hand, times)).workers == 3 + 2 + ceil(600 * 0.005 / 1.5)
    assert wish(Work(line_of(("quick", 1, 0.5)), in_hand, times)).workers == 3 + 1


def test_a_job_that_takes_longer_than_its_kind_keeps_its_worker() -> None:
    work = Work(line_of(("quick", 9, 0.0)), [("slow", 2.5)] * 3, TIMES)
    assert wish(work).workers == 3 + 1


def test_a_kind_that_is_not_measured_counts_as_under_demand() -> None:
    few = attrs.evolve(SLOW, runs=MEASURED_RUNS - 1)
    for times in ({}, {"new": few}):
        work = Work(line_of(("new", 7, 0.0)), [("new", 1.0)] * 2, times)
        assert wish(work) == WantedCrew(9, "demand", None, 2.0)
    mixed = Work(line_of(("new", 2, 0.0), ("quick", 100, 0.0)), (), TIMES)
    assert wish(mixed).workers == 2 + 1
    behind = Work(line_of(("new", 2, 0.0)), [("slow", 0.0)] * 3, TIMES)
    assert wish(behind).workers == 2 + 3 - 1


def test_a_kind_without_a_promise_has_a_worker_and_no_more() -> None:
    policy = attrs.evolve(POLICY, promises=Promises(of_kinds={"quick": 1.0}))
    alone = Work(line_of(("slow", 50, 900.0)), times=TIMES)
    assert wish(alone, policy) == WantedCrew(1, "drain", None, None)
    before = Work(line_of(("slow", 5, 0.0), ("quick", 1, 0.0)), times=TIMES)
    assert wish(before, policy) == WantedCrew(6, "drain", ("quick", 6), 1.0)  # none ends in 1 s


def test_what_arrives_all_the_time_leaves_some_headroom() -> None:
    busy = Work(in_hand=[("slow", 1.0)] * 9, times=TIMES, arrivals={"slow": 2.0})
    assert wish(busy) == WantedCrew(ceil(2 * 2.0 / 0.85), "steady", None, None)
    policy = attrs.evolve(POLICY, default_count=6)
    assert wish(busy, policy) == WantedCrew(5, "floor", None, None)


def test_what_becomes_due_soon_counts_as_far_as_demand_allows() -> None:
    now, soon = ("slow", 2, 0.0), ("slow", 6, -0.5)
    assert wish(Work(line_of(now, soon), times=TIMES)) == WantedCrew(2, "demand", None, 2.0)
    line = line_of(("quick", 40, 0.0), soon)
    assert wish(Work(line, times=TIMES)) == WantedCrew(5, "upcoming", ("slow", 46), 2.0)
    assert wish(Work(line_of(soon), times=TIMES)).workers == 0


def test_jobs_that_a_look_does_not_reach_count_like_the_last_one_seen() -> None:
    line = attrs.evolve(line_of(("quick", 2_000, 1.0)), unseen=6_000)
    assert wish(Work(line, times=TIMES)).workers == ceil(7_999 * 0.005 / 1.0)


def test_a_broken_promise_is_made_up_for_soon() -> None:
    late = Work(line_of(("quick", 601, 50.0)), times=TIMES)
    assert wish(late) == WantedCrew(12, "drain", ("quick", 601), -48.0)


def test_without_work_to_judge_by_it_is_demand() -> None:
    assert raw_wish(Situation(5, 2, 2), POLICY) == 7
    assert raw_wish(Situation(None, 2, 2), POLICY) is None


services = st.builds(
    Service, st.integers(0, 9), st.floats(0.001, 20), st.sampled_from([0.0, 0.0, 0.5, 5.0])
)
names = st.sampled_from("abcd")
promises = st.builds(
    Promises,
    st.sampled_from([0.0, 0.3, 2.0, 60.0]),
    st.dictionaries(names, st.sampled_from([0.0, 0.5, 1.0, 30.0]), max_size=3),
)
works = st.builds(
    Work,
    st.lists(st.tuples(names, st.integers(1, 90), st.floats(-1, 90)), max_size=8).map(
        lambda found: line_of(*sorted(found, key=lambda one: -one[2]))
    ),
    st.lists(st.tuples(names, st.floats(0, 30)), max_size=9),
    st.dictionaries(names, services),
    st.dictionaries(names, st.floats(0, 50)),
)


@settings(max_examples=scaled(500))
@given(works, promises)
def test_it_never_wishes_for_more_than_demand(work: Work, promises: Promises) -> None:
    policy = attrs.evolve(POLICY, promises=promises)
    most = raw_wish(seen(work), attrs.evolve(policy, policy="demand"))
    least = min(1, seen(work).due or 0)
    found = wish(work, policy)
    assert found.workers is not None
    assert most is not None
    assert least <= found.workers <= most


@pytest.fixture(params=[latency.LONG_KINDS_MAX, 1])
def long_kinds_max(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kinds beyond that count as a whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "LONG_KINDS_MAX", request.param)
        yield


@pytest.mark.usefixtures("long_kinds_max")
@settings(max_examples=scaled(500), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(works, promises, st.data())
def test_more_or_older_jobs_never_mean_fewer_workers(
    work: Work, promises: Promises, data: st.DataObject
) -> None:
    """Older as they stand: each has waited longer, and none has overtaken another."""
    policy = attrs.evolve(POLICY, promises=promises)
    line = list(work.line.waiting)
    at = data.draw(st.integers(0, len(line)))
    before = line[at - 1].waited_seconds if at else 90.0
    one = Waiting(data.draw(names), data.draw(st.integers(1, 9)), 0, before)
    longer = Line([*line[:at], one, *line[at:]])
    by = data.draw(st.floats(0, 5))
    older = Line([each._replace(waited_seconds=each.waited_seconds + by) for each in line])
    little = wish(work, policy).workers or 0
    for more in (longer, older):
        assert (wish(attrs.evolve(work, line=more), policy).workers or 0) >= little


@settings(max_examples=scaled(300))
@given(works, promises, st.lists(st.integers(1, 40), min_size=2, max_size=5))
def test_nodes_share_the_work(work: Work, promises: Promises, rooms: Sequence[int]) -> None:
    """Together they have the workers that one node alone would have, and one too many each at most;
    as `demand` does, each unmeasured job has its worker on one of them.
    """
    work = attrs.evolve(work, in_hand=(), arrivals={})
    together, before = 0, 0
    for room in rooms:
        policy = attrs.evolve(POLICY, promises=promises, max_count=room)
        others = Others(sum(rooms) - room, before, lot=7)
        together += wish_of(seen(work, others), policy).workers or 0
        before += room
    alone = wish(work, attrs.evolve(POLICY, promises=promises)).workers or 0
    assert alone - len(rooms) <= together <= alone + 2 * len(rooms)


TICKS = st.sampled_from([0.25, 1.0, 3.0])
loads = st.lists(
    st.tuples(st.floats(0, 30), st.sampled_from("abcd"), st.integers(1, 40)), max_size=6
).filter(bool)
durations = st.fixed_dictionaries({name: st.floats(0.001, 6) for name in "abcd"})


@pytest.mark.usefixtures("long_kinds_max")
@settings(
    max_examples=scaled(400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(loads, durations, promises, TICKS, st.integers(0, 3), st.sampled_from([0.0, 0.003, 0.2]))
def test_nobody_waits_longer_than_promised_and_a_tick(
    bursts: Sequence[tuple[float, str, int]],
    seconds: dict[str, float],
    promises: Promises,
    tick: float,
    floor: int,
    claim: float,
) -> None:
    """Jobs of a kind take equally long, nothing bounds the crew, and nothing is known at first."""
    jobs = sorted((at, seconds[kind], kind) for at, kind, n in bursts for _ in range(n))
    trace = trace_of([job[:2] for job in jobs], kinds=[job[2] for job in jobs])
    trace = attrs.evolve(trace, pick_up_seconds=claim, handover_seconds=claim)
    promises = attrs.evolve(promises, interval_seconds=tick)
    run = simulate(
        trace, promising(0, tick, promises=promises, default_count=floor, max_count=10_000)
    )
    for (_, _, kind), waited in zip(jobs, run.waits, strict=True):
        if promised := promises.of(kind):
            assert waited <= promised + tick + claim + 1e-6


def test_the_time_between_two_jobs_counts_as_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that two workers could just begin in time if there were none."""
    jobs = [*((0.001 * n, 0.05) for n in range(4)), *((10.25, 0.05) for _ in range(63))]
    trace = attrs.evolve(trace_of(jobs), handover_seconds=0.008)
    in_time = simulate(trace, promising(2.0, default_count=1, max_count=64))
    assert max(in_time.waits) <= 2.0

    def without(times: Mapping[str, Service], _: float) -> Mapping[str, Service]:
        return times

    monkeypatch.setattr(line, "with_handover", without)
    late = simulate(trace, promising(2.0, default_count=1, max_count=64))
    assert max(late.waits) > 2.0


def turns_of(run: Run) -> list[float]:
    """When growing followed shrinking, or the other way round."""
    changes = [(at, after > before) for (_, before), (at, after) in pairwise(run.sizes)]
    return [at for (_, up), (at, now_up) in pairwise(changes) if up != now_up]


@settings(max_examples=scaled(100), deadline=None)
@given(st.floats(0.2, 40), st.floats(0.01, 4), st.sampled_from([0.5, 2.0, 10.0]))
def test_a_steady_load_turns_the_crew_round_once_a_window_at_most(
    rate: float, seconds: float, promised: float
) -> None:
    jobs = [(n / rate, seconds) for n in range(int(min(120 * rate, 1_500)))]
    run = simulate(trace_of(jobs), promising(promised, default_count=1, max_count=1_000))
    windows = run.ended_seconds / SHIPPED.stabilization_seconds
    assert len(turns_of(run)) <= 1 + windows


@settings(max_examples=scaled(200), deadline=None)
@given(loads, durations, st.sampled_from([0.5, 2.0, 10.0]), st.sampled_from([2.0, 10.0]))
def test_no_load_turns_the_crew_round_more_than_once_a_window(
    bursts: Sequence[tuple[float, str, int]],
    seconds: dict[str, float],
    promised: float,
    window: float,
) -> None:
    """In any stretch of time, and a last shrink between two growths more."""
    jobs = sorted((at, seconds[kind], kind) for at, kind, n in bursts for _ in range(n))
    run = simulate(
        trace_of([job[:2] for job in jobs], kinds=[job[2] for job in jobs]),
        promising(promised, default_count=0, max_count=1_000, stabilization_seconds=window),
    )
    turns = turns_of(run)
    for first in range(len(turns)):
        for last in range(first, len(turns)):
            assert last - first <= 2 + (turns[last] - turns[first]) / window


def test_a_crew_that_grew_again_is_kept_until_two_windows_after_it_shrank() -> None:
    jobs = [(at, 1.0) for at in (0.5, 8.5, 40.5) for _ in range(8)]
    run = simulate(trace_of(jobs), promising(0.5, default_count=1, max_count=64))
    changes = [(at, after - before) for (_, before), (at, after) in pairwise(run.sizes)]
    assert [at for at, by in changes if by > 0] == [1.0, 9.0, 41.0]
    shrank = [at for at, by in changes if by < 0]
    assert shrank == [3.0, 23.0, 43.0]


def test_jobs_of_a_kind_that_differ_tenfold_are_started_in_time_but_for_a_few() -> None:
    jobs = [(n * 0.25, 0.2 if n * 7 % 10 < 6 else 2.0) for n in range(2_400)]
    run = simulate(trace_of(jobs), promising(2.0, default_count=1, max_count=64))
    late = [waited for waited in run.waits if waited > 2.0 + 1.0]
    assert len(late) <= len(jobs) / 1_000
    fixed = simulate(trace_of(jobs), promising(2.0, policy="demand", default_count=1, max_count=64))
    assert run.worker_seconds <= fixed.worker_seconds


def test_arrivals_are_counted_by_when_they_were_due() -> None:
    arrivals = Arrivals()
    for second in range(300):
        arrivals.note("a", [0.5, 0.25], float(second))
    assert arrivals.a_second(300.0)["a"] == pytest.approx(2.0, rel=0.05)
    assert arrivals.a_second(300.0 + SMOOTHING_SECONDS)["a"] == pytest.approx(2.0 / 2.718, rel=0.05)
    arrivals.note("b", [600.0] * 1_000, 300.0)
    assert arrivals.a_second(300.0)["b"] < 0.01, "they became due long ago"
