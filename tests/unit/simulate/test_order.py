"""What the queue of a simulation knows beside time: priorities, targets, caps, nodes, the guard,
jobs made for later and slots of schedules. Each beside an answer that is worked out by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musterd.config.load import load
from musterd.config.scaling import Guard
from musterd.config.schedules import Schedule
from musterd.manager.scaling.latency import Promises
from musterd.manager.scaling.model.line import SimulatedQueue
from musterd.manager.scaling.model.simulation import simulate
from musterd.manager.scaling.model.trace import NONE, Trace
from tests.support.scale import scaled
from tests.support.stage import NO_FILE
from tests.support.traces import BEGUN_AT, rules, trace_of


def alone(**policy: Any) -> Any:
    return rules(default_count=1, max_count=1, **policy)


def test_the_highest_priority_goes_first_then_who_was_due_first() -> None:
    trace = attrs.evolve(
        trace_of([(0.0, 3.0), (0.5, 2.0), (1.0, 2.0), (1.5, 2.0)]), priorities=[0, 0, 7, 7]
    )
    assert list(simulate(trace, alone()).waits) == [0.0, 6.5, 2.0, 3.5]


def test_jobs_of_one_target_run_one_at_a_time_and_others_pass_them() -> None:
    """Three of a target and one of none on four workers: the target's go 0-3, 3-6, 6-9."""
    trace = attrs.evolve(
        trace_of([(0.0, 3.0), (0.0, 3.0), (0.0, 3.0), (1.0, 3.0)]), targets=["a", "a", "a", ""]
    )
    run = simulate(trace, rules(default_count=4))
    assert list(run.waits) == [0.0, 3.0, 6.0, 0.0]
    assert run.most_busy == 2


def test_a_target_is_kept_for_a_further_attempt() -> None:
    """The first runs 0-2, is due again at 7, runs 7-9; the other of its target comes then."""
    trace = attrs.evolve(
        trace_of([(0.0, 2.0), (1.0, 1.0), (7.0, 2.0)]),
        targets=["a", "a", "a"],
        next_attempt=[2, NONE, NONE],
        pause_seconds=[5.0, 0.0, 0.0],
        firsts=[0, 1],
    )
    assert list(simulate(trace, rules()).waits) == [0.0, 8.0, 0.0]


def test_no_more_of_a_kind_run_than_its_cap_and_others_pass_them() -> None:
    trace = trace_of([(0.0, 2.0)] * 4 + [(0.5, 2.0)], kinds=["a"] * 4 + ["b"])
    settings = attrs.evolve(rules(default_count=5), caps={"a": 2})
    run = simulate(trace, settings)
    assert list(run.waits) == [0.0, 0.0, 2.0, 2.0, 0.0]
    assert run.most_busy == 3


def test_who_stood_aside_comes_back_to_its_place() -> None:
    """Of cap 1: a runs 0-4, the second a waits aside from 1 on. At 4 it goes before b of 3.5."""
    trace = trace_of([(0.0, 4.0), (0.5, 3.0), (1.0, 2.0), (3.6, 2.0), (3.7, 2.0)], None, [*"abaab"])
    settings = attrs.evolve(rules(default_count=2, max_count=2), caps={"a": 1})
    run = simulate(trace, settings)
    starts = [due + wait for due, wait in zip(trace.due_seconds, run.waits, strict=True)]
    assert starts == [0.0, 0.5, 4.0, 6.0, pytest.approx(3.7)]


def test_no_more_jobs_run_on_all_nodes_than_may() -> None:
    settings = attrs.evolve(rules(default_count=3, max_running=4), nodes=2)
    run = simulate(trace_of([(0.0, 2.0)] * 8), settings)
    assert list(run.waits) == [0.0] * 4 + [2.0] * 4
    assert run.most_busy == 4


def test_each_node_takes_its_share_and_all_together_no_more_than_there_is() -> None:
    """Two nodes of 1 to 20: twelve are due, two run. At 0.5 one takes its half of ten, at 1 the
    other its part of what is left, and so on.
    """
    settings = attrs.evolve(rules(default_count=1, max_count=20), nodes=2)
    run = simulate(trace_of([(0.25, 60.0)] * 12), settings)
    assert run.sizes[0] == (0.0, 2)
    (first, after_first), (second, after_second) = run.sizes[1:3]
    assert (first, second) == (0.5, 1.0)
    assert after_first == 7  # half of the ten
    assert after_second in (9, 10)  # of five, after which they stay or not by lot
    assert max(size for _, size in run.sizes) == 12
    assert run.waits[-1] <= 2.75


def test_a_node_that_is_full_leaves_the_rest_to_the_others() -> None:
    settings = attrs.evolve(rules(default_count=1, max_count=4), nodes=3)
    run = simulate(trace_of([(0.25, 60.0)] * 30), settings)
    assert max(size for _, size in run.sizes) == 12
    assert run.most_busy == 12


def test_the_guard_holds_the_simulated_crew_when_it_held_the_real_one() -> None:
    trace = attrs.evolve(trace_of([(0.5, 60.0)] * 5), guarded=[(0.0, 3.5), (50.0, 70.0)])
    guard = Guard(cpu_pressure_percent=60)
    run = simulate(trace, rules(guard=guard))
    assert run.sizes[:2] == ((0.0, 2), (4.0, 5))
    assert simulate(trace, rules()).sizes[:2] == ((0.0, 2), (1.0, 5))  # without a guard it is off


def test_latency_sees_jobs_that_were_made_for_later_while_others_are_due() -> None:
    """Two kinds known: at the tick of 20 one job is due, and 40 of a second each become due within
    the interval; of those that nobody has made yet, nothing is known.
    """
    known = [(float(n), 0.25) for n in range(5)]
    later = [(20.5, 1.0)] * 40
    trace = attrs.evolve(
        trace_of([*known, *((19.5, 1.0) for _ in range(3)), *later], kinds=["a"] * 48),
        made_seconds=[*(float(n) for n in range(5)), *[19.5] * 3, *[19.6] * 40],
    )
    promises = Promises(2.0, interval_seconds=1.0)
    settings = rules(policy="latency", default_count=1, max_count=64, promises=promises)
    on = SimulatedQueue(trace, 1.0)
    on.resize(1, 0.0)
    on.advance(20.0)
    seen = on.work(0, 20.0, 1.0).line.waiting
    assert [(one.number, one.waited_seconds) for one in seen] == [(2, 0.5), (40, -0.5)]
    unmade = SimulatedQueue(attrs.evolve(trace, made_seconds=()), 1.0)
    unmade.resize(1, 0.0)
    unmade.advance(20.0)
    assert [one.number for one in unmade.work(0, 20.0, 1.0).line.waiting] == [2]
    late = max(simulate(trace, settings).waits)
    assert late <= 3.0


def test_latency_sees_the_slots_of_schedules_that_are_about_to_come() -> None:
    """Ten jobs of `a` may wait, so one worker is enough; five slots of `b` may not, and at the tick
    of 59 they are a second away.
    """
    known = [(float(n), 1.0) for n in range(6)]
    trace = trace_of(
        [*known, *[(58.5, 1.0)] * 10, *[(60.0, 1.0)] * 5],
        kinds=[*"aaabbb", *"a" * 10, *"b" * 5],
    )
    promises = Promises(of_kinds={"a": 20.0, "b": 1.0}, interval_seconds=1.0)
    settings = rules(policy="latency", default_count=1, max_count=9, promises=promises)
    slots = {f"s{n}": each_minute(f"s{n}", "b") for n in range(5)}
    grew = [
        next(at for at, size in simulate(trace, one).sizes if at > 30 and size > 1)
        for one in (settings, attrs.evolve(settings, schedules=slots))
    ]
    assert grew == [60.0, 59.0]


def each_minute(name: str, kind: str) -> Schedule:
    sets = [f"schedules.{name}.kind={kind}", f"schedules.{name}.cron='* * * * *'"]
    return load(None, {}, sets, NO_FILE).settings.schedules[name]


jobs = st.lists(
    st.tuples(
        st.integers(0, 200), st.integers(0, 60), st.integers(-2, 2),
        st.sampled_from(["", "", "a", "b"]), st.sampled_from(["k", "l", "m"]),
    ),
    min_size=1, max_size=50,
)  # fmt: skip


@settings(max_examples=scaled(150), deadline=None)
@given(
    jobs,
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(["k", "l"]), st.integers(1, 3)),
    st.none() | st.integers(1, 4),
    st.sampled_from(["demand", "depth", "latency"]),
)
def test_limits_hold_and_every_job_runs(
    found: Sequence[tuple[int, int, int, str, str]],
    nodes: int,
    caps: dict[str, int],
    most: int | None,
    policy: str,
) -> None:
    trace = placed(found)
    settings = rules(
        policy=policy, max_running=most, default_count=1, max_count=6, promises=Promises(2.0)
    )
    run = simulate(trace, attrs.evolve(settings, nodes=nodes, caps=caps))
    assert all(wait >= 0 for wait in run.waits)
    starts = [due + wait for due, wait in zip(trace.due_seconds, run.waits, strict=True)]
    for entry, start in enumerate(starts):
        beside = [
            other
            for other, began in enumerate(starts)
            if began <= start < began + trace.run_seconds[other]
        ]
        assert len(beside) <= min(nodes * 6, most or 99)
        if trace.run_seconds[entry]:
            kind, target = trace.kinds[entry], trace.target(entry)
            alike = [trace.kinds[other] for other in beside].count(kind)
            assert alike <= caps.get(kind, 99)
            assert not target or [trace.target(one) for one in beside].count(target) == 1
    assert run.sizes[-1][1] == nodes * min(1, most or 1)
    assert max(size for _, size in run.sizes) <= nodes * min(6, most or 6)


def placed(found: Sequence[tuple[int, int, int, str, str]]) -> Trace:
    trace = trace_of(
        [(due / 8, ran / 8) for due, ran, *_ in found], None, [one[4] for one in found]
    )
    return attrs.evolve(
        trace, priorities=[one[2] for one in found], targets=[one[3] for one in found]
    )


def test_a_trace_is_the_same_wherever_it_begins() -> None:
    """A day later all is a day later, but for hours and slots."""
    trace = trace_of([(0.5, 3.0)] * 9)
    later = attrs.evolve(trace, begun_at=BEGUN_AT + timedelta(days=1))
    assert list(simulate(trace, rules()).waits) == list(simulate(later, rules()).waits)
