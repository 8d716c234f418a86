"""Loads, figures and schedules of the scaling benchmark."""

import math
from itertools import pairwise

import pytest

from tests.bench.scaling import modelled
from tests.bench.scaling.figures import PROMISED_SECONDS, Crew, Found, Ran
from tests.bench.scaling.loads import LOADS, arrivals, catalog, together
from tests.bench.scaling.schedules import Offline
from tests.bench.scaling.telling import COLUMNS, HEADS, rows, schedules_line
from tests.support.pages import bare, page, table

WINDOW_SECONDS = 30.0
CALM = [Ran(at * 3.0, 0.1, 1.0) for at in range(10)]
BURST = [Ran(12.0, 0.5, 1.0)] * 9
KEEPS_TWO = PROMISED_SECONDS - 1  # a worker starts one at once, and two more within the promise


def found(*crews: Crew, waits: tuple[float, ...] = (0.1,), name: str = "fixed") -> Found:
    return Found(
        name, [Ran(0.0, wait, 1.0) for wait in waits], crews, hired=3, ended_early=(0, 0, 0)
    )


def offline(*jobs: Ran, most: int = 16) -> Offline:
    return Offline(sorted(jobs), WINDOW_SECONDS, most)


@pytest.mark.parametrize("load", LOADS)
def test_a_load_is_the_same_each_time_in_order_and_within_its_time(load: str) -> None:
    jobs = arrivals(load, 60)
    assert jobs == arrivals(load, 60)
    assert all(before.at_seconds <= after.at_seconds for before, after in pairwise(jobs))
    assert 0 <= jobs[0].at_seconds < jobs[-1].at_seconds < 60
    assert [one for _, alike in together(jobs) for one in alike] == list(jobs)
    assert all(f"[kinds.{one.kind}]\n" in catalog(jobs) for one in jobs)


def test_a_day_has_most_of_its_jobs_at_noon() -> None:
    noon = sum(20 <= one.at_seconds < 40 for one in arrivals("curve", 60))
    assert noon > len(arrivals("curve", 60)) / 2


def test_bursts_come_at_once() -> None:
    assert [len(alike) for _, alike in together(arrivals("bursts", 60))] == [300] * 4


def test_worker_seconds_are_those_of_the_window() -> None:
    one = found(Crew(-7.0, 1), Crew(4.0, 5), Crew(10.0, 2), Crew(99.0, 9))
    assert one.worker_seconds(WINDOW_SECONDS) == 4 * 1 + 6 * 5 + 20 * 2


def test_a_turn_is_a_change_of_direction() -> None:
    sizes = [1, 3, 5, 5, 2, 1, 4]
    assert found(*(Crew(at, size) for at, size in enumerate(sizes))).turns == 2
    assert found(Crew(0, 1)).turns == 0


def test_a_promise_is_kept_up_to_its_last_moment() -> None:
    waits = (PROMISED_SECONDS, PROMISED_SECONDS + 0.001, 0.0, 0.1)
    assert found(waits=waits).kept == 0.75


@pytest.mark.parametrize(
    ("predicted", "real", "is_predicted"),
    [(0.0, 0.05, True), (0.0, 0.06, False), (1.8, 2.0, True), (1.7, 2.0, False), (None, 1.0, None)],
)
def test_a_prediction_may_miss_by_a_tenth_or_a_moment(
    predicted: float | None, real: float, is_predicted: bool | None
) -> None:
    one = Found("demand", CALM, [], 0, (0, 0, 0), predicted, real)
    assert one.is_predicted is is_predicted


def test_the_least_constant_crew_keeps_the_promise_and_a_smaller_one_does_not() -> None:
    known = offline(*BURST)
    found = known.constant()
    assert found is not None
    size = math.ceil(len(BURST) / (KEEPS_TWO + 2))
    assert found.sizes == (size,) * 3
    assert found.worker_seconds == size * WINDOW_SECONDS
    assert not known.followed((size - 1,) * 3).keeps


def test_a_schedule_is_large_only_while_it_must_be() -> None:
    best = offline(*CALM, *BURST).least()
    assert best is not None
    assert best.sizes[0] == best.sizes[2] == 1
    assert best.sizes[1] > 1
    assert best.keeps


def test_who_is_busy_stays_until_the_job_is_done_and_takes_no_other() -> None:
    both = offline(Ran(5.0, 0, 8.0), Ran(6.0, 0, 10.0), Ran(10.5, 0, 1.0)).followed((2, 1, 1))
    assert both.worker_seconds == 20 + 10 + 10 + 3  # the first has 3 s left when the crew shrinks
    assert both.kept == pytest.approx(2 / 3)  # the third begins at 16
    cut = Offline([Ran(0.0, 0, 1.0)], 25.0, 4).followed((1, 1, 3))
    assert cut.worker_seconds == 10 + 10 + 15


def test_what_no_crew_keeps_has_no_schedule() -> None:
    known = offline(*[Ran(1.0, 0, 9.0)] * 3, most=2)
    assert known.constant() is known.least() is None
    assert "no crew of up to" in schedules_line("long", known)


@pytest.mark.parametrize("without", modelled.WITHOUT)
def test_what_costs_how_much_is_what_the_model_says(without: str) -> None:
    told = {bare(name): cells for name, *cells in table(page("benchmarks.md"), "without", *LOADS)}
    assert told[bare(without)][list(LOADS).index("long")] == modelled.cell("long", without)


def test_a_row_has_a_cell_for_each_column() -> None:
    known = offline(*CALM)
    (row,) = rows("calm", [found(Crew(0.0, 2))], known)
    cells = [one.strip() for one in row.strip("|").split("|")]
    assert len(cells) == len(COLUMNS) == HEADS.splitlines()[1].count("---")
    assert cells[5:9] == ["100.00 %", "60", "2.00", "2.00"]
    assert cells[-1] == "-"
    assert "least constant crew 1 (30)" in schedules_line("calm", known)
