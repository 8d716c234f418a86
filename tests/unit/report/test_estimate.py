"""The band in which a job starts, against a model that plays the queue out."""

import heapq
from random import Random

import attrs
import pytest

from musterd.store.estimate import (
    HANDOVER_SECONDS,
    SLACK_SECONDS,
    estimate,
    free_workers,
    service,
)
from musterd.store.nodes import Kinds, KnownKind, NodeRecord
from musterd.store.why_facts import Leased, Line, WhyFacts
from tests.unit.report.test_why_report import NODE, SEEN


def node(workers: int, most: int, **kinds: KnownKind) -> NodeRecord:
    return attrs.evolve(
        NODE, idle=0, busy=workers, default_count=workers, max_count=most,
        kinds=Kinds(kinds),
    )  # fmt: skip


def known(seconds: float, deviation: float = 0.0, runs: int = 1000) -> KnownKind:
    return KnownKind(None, None, runs, seconds, deviation)


def seen(nodes: list[NodeRecord], before: dict[str, int], leased: list[Leased]) -> WhyFacts:
    line = Line(before, before, 0, is_whole=True, includes_it=True)
    held = tuple(leased)
    return attrs.evolve(SEEN, nodes=tuple(nodes), line=line, leased=held, leased_total=len(held))


def played_out(rests: list[float], ahead: list[float]) -> float:
    """When the next job starts, if each worker takes the first that waits as soon as it can."""
    free_at = list(rests)
    heapq.heapify(free_at)
    for seconds in ahead:
        heapq.heapreplace(free_at, free_at[0] + seconds)
    return free_at[0]


@pytest.mark.parametrize("seed", range(200))
def test_the_start_lies_in_the_band_whatever_the_order(seed: int) -> None:
    rng = Random(seed)
    lengths = {name: rng.uniform(0.01, 20) for name in "abc"}
    kinds = {name: known(seconds) for name, seconds in lengths.items()}
    workers = rng.randint(1, 9)
    in_hand = [rng.choice("abc") for _ in range(workers)]
    ran = [rng.uniform(0, lengths[name]) for name in in_hand]
    ahead = [rng.choice("abc") for _ in range(rng.randint(0, 60))]
    leased = [Leased(n, name, "north", n, ran[n]) for n, name in enumerate(in_hand)]
    before = {name: ahead.count(name) for name in set(ahead)}
    band = estimate(seen([node(workers, workers, **kinds)], before, leased))
    rests = [lengths[name] - done for name, done in zip(in_hand, ran, strict=True)]
    start = played_out(rests, [lengths[name] for name in ahead])
    assert band.latest_seconds is not None
    assert band.earliest_seconds - 1e-9 <= start <= band.latest_seconds
    width = max(lengths.values()) + SLACK_SECONDS + HANDOVER_SECONDS * (len(ahead) + workers)
    assert band.latest_seconds - band.earliest_seconds <= width + 1e-9


def test_nodes_of_one_name_have_their_workers_together() -> None:
    """A lease names its node, and no more is known of it."""
    nodes = [node(3, 3), node(2, 2)]
    leased = [Leased(number, "a", "north", number, 1.0) for number in range(4)]
    assert free_workers(nodes, leased) == 1


def test_the_early_end_takes_the_crew_that_there_may_be() -> None:
    leased = [Leased(1, "a", "north", 1, 0.0)]
    grown = estimate(seen([node(1, 4, a=known(10))], {"a": 40}, leased))
    fixed = estimate(seen([node(1, 1, a=known(10))], {"a": 40}, leased))
    assert grown.earliest_seconds == (10 + 400 - 3 * 10) / 4
    assert fixed.earliest_seconds == 410
    assert grown.latest_seconds == fixed.latest_seconds


def test_where_nobody_can_be_hired_the_first_to_end_is_waited_for() -> None:
    leased = [Leased(1, "a", "north", 1, 4.0), Leased(2, "a", "north", 2, 7.0)]
    assert estimate(seen([node(2, 2, a=known(10))], {}, leased)).earliest_seconds == 3


def test_what_was_never_measured_leaves_the_late_end_open() -> None:
    leased = [Leased(1, "a", "north", 1, 0.0)]
    band = estimate(seen([node(1, 1, a=known(10))], {"a": 2, "b": 1}, leased))
    assert (band.earliest_seconds, band.latest_seconds, band.unmeasured) == (30, None, ("b",))


def test_what_other_nodes_hold_that_take_no_jobs_does_not_count() -> None:
    draining = attrs.evolve(node(1, 1, a=known(10)), name="south", phase="draining")
    leased = [Leased(1, "a", "north", 1, 5.0), Leased(2, "a", "south", 1, 0.0)]
    band = estimate(seen([node(1, 1, a=known(10)), draining], {}, leased))
    assert band.earliest_seconds == 5


def test_workers_that_a_limited_kind_may_take_are_not_counted_on() -> None:
    narrow = attrs.evolve(known(10), max_running=2)
    north = node(4, 4, a=known(10), narrow=narrow)
    leased = [Leased(n, "a", "north", n, 0.0) for n in range(4)]
    plain = estimate(seen([north], {"a": 20}, leased))
    beside = attrs.evolve(seen([north], {"a": 20}, leased), parked_kinds=frozenset({"narrow"}))
    late, later = plain.latest_seconds, estimate(beside).latest_seconds
    assert late is not None
    assert later is not None
    assert later - SLACK_SECONDS == pytest.approx(2 * (late - SLACK_SECONDS))
    all_taken = attrs.evolve(beside, nodes=(node(2, 2, a=known(10), narrow=narrow),))
    assert estimate(all_taken).latest_seconds is None


def test_times_of_several_nodes_are_put_together_by_their_runs() -> None:
    nodes = [node(1, 1, k=known(10, 0, 300)), node(1, 1, k=known(20, 0, 100))]
    found = service(nodes, "k")
    assert found is not None
    assert (found.runs, found.mean_seconds) == (400, 12.5)
    assert found.deviation_seconds == pytest.approx(4.33, abs=0.01)
    assert service(nodes, "other") is None


def test_times_that_vary_widen_the_band() -> None:
    leased = [Leased(1, "a", "north", 1, 0.0)]
    narrow = estimate(seen([node(1, 1, a=known(10, 1))], {"a": 100}, leased))
    wide = estimate(seen([node(1, 1, a=known(10, 5))], {"a": 100}, leased))
    assert wide.earliest_seconds < narrow.earliest_seconds < 1010
    assert (narrow.latest_seconds or 0) > 1010
    assert (wide.latest_seconds or 0) > (narrow.latest_seconds or 0)


@pytest.mark.parametrize("seed", range(100))
def test_the_start_lies_in_the_band_where_fewer_may_run_than_there_are_workers(seed: int) -> None:
    rng = Random(seed)
    most = rng.randint(1, 6)
    lengths = {name: rng.uniform(0.01, 20) for name in "ab"}
    in_hand = [rng.choice("ab") for _ in range(most)]
    ran = [rng.uniform(0, lengths[name]) for name in in_hand]
    ahead = [rng.choice("ab") for _ in range(rng.randint(0, 40))]
    leased = [Leased(n, name, "north", n, ran[n]) for n, name in enumerate(in_hand)]
    before = {name: ahead.count(name) for name in set(ahead)}
    kinds = Kinds({name: known(one) for name, one in lengths.items()}, max_running=most)
    crew = attrs.evolve(node(9, 12), kinds=kinds)
    band = estimate(seen([crew], before, leased))
    rests = [lengths[name] - done for name, done in zip(in_hand, ran, strict=True)]
    start = played_out(rests, [lengths[name] for name in ahead])
    assert band.latest_seconds is not None
    assert band.earliest_seconds - 1e-9 <= start <= band.latest_seconds
    # What a dead node has in hand takes up room, and nobody can say until when.
    lost = attrs.evolve(seen([crew], before, []), leased_total=most)
    assert estimate(lost).latest_seconds is None
