"""The crew on a virtual clock: by hand, by laws, and beside a loop that works out every tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from musterd.config.scaling import Hours
from musterd.manager.scaling.decision import Memory, ScalingPolicy, Situation, decide
from musterd.manager.scaling.hours import HoursClock, with_hours
from musterd.manager.scaling.latency import Promises
from musterd.manager.scaling.model.line import SimulatedQueue
from musterd.manager.scaling.model.settings import ModelSettings, rest_size
from musterd.manager.scaling.model.simulation import simulate
from musterd.manager.scaling.model.trace import NONE, Trace
from musterd.manager.scaling.steps import Steps
from tests.support.scale import scaled
from tests.support.traces import rules, trace_of


def test_who_finds_an_idle_worker_does_not_wait() -> None:
    run = simulate(trace_of([(0.5, 3.0), (0.6, 3.0), (10.0, 1.0)]), rules())
    assert list(run.waits) == [0.0, 0.0, 0.0]
    assert run.sizes == ((0.0, 2),)
    assert run.worker_seconds == 2 * 11.0


def test_a_burst_waits_for_the_next_tick_and_no_longer() -> None:
    """Five at 0.25: two begin, three are due at the tick of 1, which hires three."""
    run = simulate(trace_of([(0.25, 4.0)] * 5), rules())
    assert list(run.waits) == [0.0, 0.0, 0.75, 0.75, 0.75]
    assert run.sizes[:2] == ((0.0, 2), (1.0, 5))
    assert (run.hired, run.longest_queue, run.most_busy) == (3, 3, 5)


def test_workers_have_their_jobs_as_late_as_in_the_trace() -> None:
    jobs = [(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (9.5, 1.0)]
    trace = attrs.evolve(trace_of(jobs), pick_up_seconds=0.01, handover_seconds=0.05)
    run = simulate(trace, rules(max_count=2))
    assert list(run.waits) == pytest.approx([0.01, 0.01, 1.06, 1.06, 0.01])


def test_ticks_fall_where_the_real_ones_fell() -> None:
    trace = attrs.evolve(trace_of([(10.5, 5.0)] * 3), tick_seconds=47.7)
    run = simulate(trace, rules(default_count=1))
    assert list(run.waits) == pytest.approx([0.0, 0.2, 0.2])
    assert [at for at, _ in run.sizes[:2]] == pytest.approx([0.0, 10.7])


def test_nobody_is_hired_beyond_max_count() -> None:
    """Two begin at 0, one more at the tick of 1; then each takes the next as it is free."""
    run = simulate(trace_of([(0.0, 2.5)] * 6), rules(max_count=3))
    assert list(run.waits) == [0.0, 0.0, 1.0, 2.5, 2.5, 3.5]
    assert max(size for _, size in run.sizes) == 3


def test_the_floor_is_there_from_the_start_and_is_never_left() -> None:
    run = simulate(trace_of([(0.5, 1.0)] * 5 + [(100.0, 1.0)]), rules(default_count=4))
    assert list(run.waits) == [0.0, 0.0, 0.0, 0.0, 0.5, 0.0]
    assert min(size for _, size in run.sizes) == 4


def test_shrinking_waits_for_the_window_then_goes_to_what_is_busy() -> None:
    """A wish of 5 is last made at 1, one of 3 at 30: ten seconds later each is forgotten."""
    jobs = [(0.5, 1.0), (0.5, 1.0), (0.5, 30.0), (0.5, 30.0), (0.5, 30.0)]
    run = simulate(trace_of(jobs), rules())
    assert run.sizes == ((0.0, 2), (1.0, 5), (11.0, 3), (40.0, 2))
    assert run.turns == 1
    quick = simulate(trace_of(jobs), rules(stabilization_seconds=2, down_cooldown_seconds=0))
    assert quick.sizes == ((0.0, 2), (1.0, 5), (3.0, 3), (32.0, 2))


def test_a_crew_that_may_not_grow_again_yet_waits() -> None:
    run = simulate(trace_of([(0.5, 30.0)] * 3 + [(1.5, 30.0)]), rules(up_cooldown_seconds=3))
    assert run.sizes[:3] == ((0.0, 2), (1.0, 3), (4.0, 4))
    assert list(run.waits) == [0.0, 0.0, 0.5, 2.5]


def test_no_more_workers_than_jobs_that_may_run() -> None:
    run = simulate(trace_of([(0.5, 2.0)] * 6), rules(default_count=3, max_running=2))
    assert run.sizes == ((0.0, 2),)
    assert list(run.waits) == [0.0, 0.0, 2.0, 2.0, 4.0, 4.0]


def test_an_empty_crew_decides_at_a_hint_and_ticks_from_then_on() -> None:
    run = simulate(trace_of([(7.25, 1.0), (7.25, 1.0), (7.5, 1.0)]), rules(default_count=0))
    assert list(run.waits) == [0.0, 0.0, 0.75]
    assert run.sizes == ((0.0, 0), (7.25, 2), (17.25, 1), (22.25, 0))


def test_an_empty_crew_that_may_not_grow_yet_waits_for_its_tick() -> None:
    run = simulate(
        trace_of([(0.5, 1.0), (4.75, 1.0), (5.0, 1.0)]),
        rules(default_count=0, up_cooldown_seconds=6, stabilization_seconds=1),
    )
    assert run.sizes == ((0.0, 0), (0.5, 1), (1.5, 0), (6.75, 2), (7.75, 0))


def test_a_decision_takes_no_more_than_a_step() -> None:
    jobs = [(0.5, 30.0)] * 8
    run = simulate(trace_of(jobs), rules(max_count=8, steps=Steps(2, 3)))
    assert run.sizes[:4] == ((0.0, 2), (1.0, 4), (2.0, 6), (3.0, 8))
    assert [size for _, size in run.sizes[4:]] == [5, 2]


def test_a_crew_above_ten_ignores_what_is_within_its_tolerance() -> None:
    jobs = [*((0.5, 100.0) for _ in range(20)), (5.5, 10.0), (5.5, 10.0), (6.5, 10.0)]
    run = simulate(trace_of(jobs), rules(max_count=40, steps=Steps(tolerance_percent=10)))
    assert run.sizes[:3] == ((0.0, 2), (1.0, 20), (7.0, 23))


def test_a_further_attempt_is_due_after_the_end_of_the_one_before() -> None:
    """It runs twice, 5 s apart, however late its first attempt is."""
    trace = attrs.evolve(
        trace_of([(0.0, 4.0), (0.0, 2.0), (7.0, 2.0)]),
        next_attempt=[NONE, 2, NONE],
        pause_seconds=[0.0, 5.0, 0.0],
        firsts=[0, 1],
    )
    run = simulate(trace, rules(default_count=1, max_count=1))
    assert list(run.waits) == [0.0, 4.0, 0.0]
    assert run.ended_seconds == 4 + 2 + 5 + 2


def test_hours_bound_the_crew_from_their_time_on() -> None:
    """The trace begins at 8:00 UTC: the hours last from 8:01 to 8:03, each day."""
    hours = (Hours("day", "1 8 * * *", 2, "UTC", 5, 6),)
    settings = attrs.evolve(rules(), hours=hours)
    jobs = [(0.5, 1.0), (100.5, 30.0), *((100.5, 30.0) for _ in range(9)), (86_400.0, 1.0)]
    run = simulate(trace_of(jobs), settings)
    assert run.sizes[:5] == ((0.0, 2), (60.0, 5), (101.0, 6), (140.0, 5), (189.0, 2))
    assert run.decisions < 60


def test_idle_weeks_cost_nothing() -> None:
    week = 7 * 86_400.0
    run = simulate(trace_of([(0.5, 1.0)] * 5 + [(week, 1.0)] * 5), rules())
    assert run.decisions < 60
    assert run.ended_seconds > week


jobs = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 120)), min_size=1, max_size=60).map(
    lambda found: [(due / 8, run / 8) for due, run in found]
)


def each_minutes(
    second: int, every: int, lasts: float, floor: int | None, ceiling: int | None
) -> Hours:
    return Hours("h", f"{second} */{every} * * * *", lasts, "UTC", floor, ceiling)


hours = st.builds(
    each_minutes,
    st.sampled_from([0, 7, 30]),
    st.integers(1, 3),
    st.sampled_from([1, 1.5, 2]),
    st.none() | st.integers(0, 6),
    st.none() | st.integers(1, 9),
)
some_rules = st.builds(
    rules,
    interval_seconds=st.sampled_from([0.25, 1.0, 3.0]),
    policy=st.sampled_from(["demand", "depth", "latency"]),
    promises=st.sampled_from([Promises(), Promises(0.5), Promises(4.0, interval_seconds=3.0)]),
    default_count=st.integers(0, 4),
    max_count=st.integers(4, 16),
    up_cooldown_seconds=st.sampled_from([0.0, 1.0, 4.5]),
    down_cooldown_seconds=st.sampled_from([0.0, 1.5, 5.0]),
    stabilization_seconds=st.sampled_from([0.0, 2.0, 10.0, 33.3]),
    max_running=st.sampled_from([None, None, 1, 3]),
    steps=st.builds(
        Steps,
        st.sampled_from([0, 1, 2]),
        st.sampled_from([0, 1, 3]),
        st.sampled_from([0.0, 20.0]),
    ),
)


def chained(pairs: Sequence[tuple[float, float]], every: int) -> Trace:
    """Every so manieth is a further attempt of the one before it, a second after its end."""
    trace = trace_of(pairs)
    again = [entry for entry in range(1, len(pairs)) if entry % every == 0]
    return attrs.evolve(
        trace,
        next_attempt=[one + 1 if one + 1 in again else NONE for one in range(len(pairs))],
        pause_seconds=[1.0] * len(pairs),
        firsts=[one for one in trace.firsts if one not in again],
    )


def every_tick(trace: Trace, rules: ModelSettings) -> tuple[list[float], list[tuple[float, int]]]:
    """As `simulate`, without passing over anything."""
    on, memory, tick, interval = SimulatedQueue(trace, 1.0), Memory(), 0, rules.interval_seconds
    origin = trace.tick_seconds % interval - interval if trace.tick_seconds % interval else 0.0
    clock, begun_at = HoursClock(), trace.begun_at.timestamp()

    def policy_at(seconds: float) -> ScalingPolicy:
        return with_hours(rules.policy, clock.in_force(rules.hours, begun_at + seconds))

    now, first = 0.0, rest_size(policy_at(0.0))
    on.resize(first, 0.0)
    sizes = [(0.0, first)]
    while on.next_at() < inf or on.queue or on.size != rest_size(policy_at(now)):
        tick += 1
        now = origin + tick * rules.interval_seconds
        if on.size == 0 and not on.queue:
            on.advance(now, stops_at_queue=True)
            if on.queue:  # a hint to an empty crew
                tick, now = 0, on.now
                origin = now
        on.advance(now)
        policy = policy_at(now)
        due = min(len(on.queue), 2 * policy.max_count + 1)
        most = policy.max_running
        is_asked = policy.policy == "latency"
        work = on.work(0, now, rules.interval_seconds) if is_asked else None
        room = None if most is None else most - on.busy
        seen = Situation(due, on.busy, on.size, room=room, work=work)
        plan, memory = decide(seen, memory, policy, now)
        on.resize(plan.desired, now)
        if on.size != sizes[-1][1]:
            sizes.append((now, on.size))
    return list(on.waits), sizes


@settings(max_examples=scaled(150), deadline=None)
@given(
    jobs,
    some_rules,
    st.integers(2, 5),
    st.lists(hours, max_size=2).map(tuple),
    st.sampled_from([0.0, 0.125, 7.8125]),
)
@example(
    [(0.0, 0.0)],
    rules(interval_seconds=0.25, default_count=0),
    2,
    (each_minutes(30, 2, 1.5, 1, None),),  # until the trace begins
    0.125,
)
def test_what_is_passed_over_changes_nothing(
    pairs: list[tuple[float, float]],
    rules: ModelSettings,
    every: int,
    in_hours: tuple[Hours, ...],
    tick_seconds: float,
) -> None:
    trace = attrs.evolve(chained(pairs, every), tick_seconds=tick_seconds)
    rules = attrs.evolve(rules, hours=in_hours)
    run = simulate(trace, rules)
    assert (list(run.waits), list(run.sizes)) == every_tick(trace, rules)


@settings(max_examples=scaled(150), deadline=None)
@given(jobs, some_rules)
def test_every_job_runs_once_and_no_worker_runs_two(
    pairs: list[tuple[float, float]], rules: ModelSettings
) -> None:
    run = simulate(trace_of(pairs), rules)
    assert all(wait >= 0 for wait in run.waits)  # none is nan: each has begun, and waited once
    starts = [due + wait for (due, _), wait in zip(pairs, run.waits, strict=True)]
    changes: Counter[float] = Counter(starts)
    changes.subtract(start + ran for start, (_, ran) in zip(starts, pairs, strict=True))
    moments = sorted({*changes, *(at for at, _ in run.sizes)})
    busy, size, sizes = 0, 0, dict(run.sizes)
    for moment in moments:
        busy += changes[moment]
        size = sizes.get(moment, size)
        assert busy <= size
    in_line = sorted(range(len(pairs)), key=lambda one: (pairs[one][0], one))
    assert [starts[one] for one in in_line] == sorted(starts)  # first come, first served
    policy = rules.policy
    floor = min(policy.default_count, policy.bound)
    assert all(floor <= size <= policy.bound for _, size in run.sizes)
    assert run.sizes[-1][1] == floor
    ends = [*(at for at, _ in run.sizes[1:]), run.ended_seconds]
    spent = sum(size * (until - at) for (at, size), until in zip(run.sizes, ends, strict=True))
    assert run.worker_seconds == pytest.approx(spent)
    assert run.worker_seconds >= sum(ran for _, ran in pairs) - 1e-6


@settings(max_examples=scaled(50), deadline=None)
@given(jobs, some_rules)
def test_the_same_trace_gives_the_same_run(
    pairs: list[tuple[float, float]], rules: ModelSettings
) -> None:
    assert simulate(trace_of(pairs), rules) == simulate(trace_of(pairs), rules)
