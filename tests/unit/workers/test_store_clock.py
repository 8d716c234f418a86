"""The store's time on a node: starts in their order, whatever clocks and answers do."""

from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.store.leases import Claim
from musterd.workers.claiming.store_clock import StoreClock

EPOCH = 1_800_000_000.0
MICROSECOND = 1e-6


def claim(epoch: float, worker: int | None = None) -> Claim:
    return Claim(1, "k", "{}", 1, None, 0, 0.0, worker, UUID(int=1), claimed_epoch=epoch)


def heard(*answers: tuple[float, float, float]) -> StoreClock:
    """Of a store that was `EPOCH` ahead; asked, answered by the store, heard."""
    clock = StoreClock()
    for asked, answered, came in answers:
        clock.hear(EPOCH + answered, asked, came)
    return clock


def test_a_slow_answer_does_not_move_it() -> None:
    clock = heard((10, 10.001, 10.002), (20, 20.9, 21), (30, 30.1, 31))
    assert clock.start(claim(0), 40) == pytest.approx(EPOCH + 39.999)


def test_it_follows_a_drift_and_a_step() -> None:
    clock = heard((10, 10.001, 10.002), (20, 20.5, 20.002), (30, 27.001, 30.002))
    assert clock.start(claim(0), 30.002) == pytest.approx(EPOCH + 27.002, abs=0.0011)


def test_no_start_is_before_its_claim() -> None:
    clock = heard((10, 10.5, 11))
    assert clock.start(claim(EPOCH + 12), 11) == EPOCH + 12


def test_what_was_claimed_for_a_worker_has_started_with_its_claim() -> None:
    clock = heard((10, 10.5, 11))
    assert clock.start(claim(EPOCH + 10.5, worker=1), 11.25) == EPOCH + 10.5


def test_but_not_before_one_that_started_meanwhile() -> None:
    clock = heard((10, 10.5, 10.5))
    meanwhile = clock.start(claim(EPOCH + 10.5), 11)
    assert clock.start(claim(EPOCH + 10.75, worker=1), 11.5) == meanwhile + 0.5


def test_starts_wait_for_a_clock_that_was_put_back_and_ends_do_not() -> None:
    clock = heard((10, 10, 10))
    before = clock.start(claim(0), 10)
    clock.hear(EPOCH + 1, 11, 11)
    after = clock.start(claim(EPOCH + 1), 11)
    assert after == before
    assert clock.end(15, after, 4.0) == after + 4
    assert clock.start(claim(EPOCH + 10), 22) == EPOCH + 12


def test_an_end_is_when_the_store_would_have_seen_it() -> None:
    """A machine that slept meanwhile has counted less than went by."""
    clock = heard((10, 10, 10))
    start = clock.start(claim(0), 10)
    clock.hear(EPOCH + 3700, 12, 12)
    assert clock.end(13, start, 3.0) == EPOCH + 3701


@attrs.define
class Node:
    """A node and a store whose clocks each go their own way. `now`: the time of both, which nobody
    sees; answers take their time there and back.
    """

    now: float = 100.0
    stepped: float = 0.0
    rate: float = 1.0
    clock: StoreClock = attrs.field(factory=StoreClock)
    starts: list[float] = attrs.field(factory=list[float])

    @property
    def store(self) -> float:
        return EPOCH + self.now + self.stepped

    @property
    def local(self) -> float:
        return self.now * self.rate

    def hear(self, there: float, back: float) -> float:
        """When the store answered, by its own clock."""
        asked = self.local
        self.now += there
        answered = self.store
        self.now += back
        self.clock.hear(answered, asked, self.local)
        return answered

    def start(self, of: Claim) -> float:
        self.starts.append(self.clock.start(of, self.local))
        return self.starts[-1]


SPANS = st.floats(0, 3, allow_subnormal=False)
VISITS = st.lists(
    st.tuples(SPANS, SPANS, st.lists(st.tuples(st.booleans(), SPANS), max_size=4)), max_size=20
)
STEPS = st.lists(st.sampled_from((0.0, 0.0, 0.001, -0.001, 60.0, -60.0, -3600.0)), min_size=20)


@given(VISITS, STEPS, st.sampled_from((1.0, 1.001, 0.999)))
def test_order_holds_under_steps_drift_and_slow_answers(
    visits: list[tuple[float, float, list[tuple[bool, float]]]], steps: list[float], rate: float
) -> None:
    node = Node(rate=rate)
    for (there, back, jobs), step in zip(visits, steps, strict=False):
        answered = node.hear(there, back)
        for has_worker, wait in jobs:
            node.now += wait
            of = claim(answered, worker=1 if has_worker else None)
            began_local, start = node.local, node.start(of)
            assert start >= answered
            node.now += wait
            run_seconds = node.local - began_local
            assert node.clock.end(node.local, start, run_seconds) >= start
        node.stepped += step
    assert node.starts == sorted(node.starts)


@given(VISITS)
def test_while_clocks_agree_no_time_is_ahead_of_the_stores(
    visits: list[tuple[float, float, list[tuple[bool, float]]]],
) -> None:
    node = Node()
    for there, back, jobs in visits:
        answered = node.hear(there, back)
        for has_worker, wait in jobs:
            node.now += wait
            start = node.start(claim(answered, worker=1 if has_worker else None))
            assert answered <= start <= node.store + MICROSECOND
            end = node.clock.end(node.local, start, 0.0)
            assert start <= end <= node.store + MICROSECOND
