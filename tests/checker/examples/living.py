"""L4 to L8: that it goes on."""

from __future__ import annotations

from tests.checker.examples.telling import (
    CLIENT,
    SOUTH,
    breaks,
    claim,
    ending,
    legal,
    make,
    settle,
)
from tests.checker.writing import History


def heal(h: History) -> None:
    h.note("fault", what="heal")


def work(h: History, jobs: range, pause: float) -> None:
    for job in jobs:
        make(h, job)
        claim(h, job, str(job))
        settle(h, job, str(job))
        h.wait(pause)


@breaks("L4", bounds={"recovery": 30})
def it_stays_slow_after_an_outage(h: History) -> None:
    work(h, range(1, 41), 0.5)
    h.note("fault", what="store_away")
    h.wait(20)
    h.note("fault", what="store_back")
    heal(h)
    work(h, range(41, 71), 2)


@legal(bounds={"recovery": 30})
def it_is_slow_for_a_while_after_an_outage(h: History) -> None:
    work(h, range(1, 41), 0.5)
    h.note("fault", what="store_away")
    h.wait(20)
    h.note("fault", what="store_back")
    heal(h)
    work(h, range(41, 51), 2.9)
    work(h, range(51, 91), 0.5)


@legal(bounds={"drain": 10})
def told_while_it_was_frozen(h: History) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="freeze", node="north")
    h.note("process", what="told", node="north")
    h.wait(50)
    h.note("fault", what="thaw", node="north")
    h.note("process", what="ended", node="north", children=0)


@breaks("L5", bounds={"drain": 10})
def a_drain_takes_too_long(h: History) -> None:
    h.note("process", what="told", node="north")
    h.wait(20)
    h.note("process", what="ended", node="north", children=0)


@breaks("L5", bounds={"drain": 10})
def a_child_is_left_behind(h: History) -> None:
    h.note("process", what="told", node="north")
    h.note("process", what="ended", node="north", children=1)


@legal(bounds={"drain": 10})
def a_frozen_node_drains_later(h: History) -> None:
    h.note("process", what="told", node="north")
    h.note("fault", what="freeze", node="north")
    h.wait(20)
    h.note("fault", what="thaw", node="north")
    h.note("process", what="ended", node="north", children=0)


@breaks("L6", bounds={"restart": 30})
def nobody_restarts_a_stuck_node(h: History) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="wedge", node="north")
    h.wait(60)
    h.note("crew", node="south", size=2, min=2, max=8)


@legal(bounds={"restart": 30})
def the_watchdog_restarts_a_stuck_node(h: History) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="wedge", node="north")
    h.wait(20)
    h.note("process", what="ended", node="north")
    h.note("process", what="started", node="north")


@breaks("L7", bounds={"poison_wait": 90, "wait": 10})
def a_poisonous_job_holds_the_others_up(h: History) -> None:
    make(h, 1)
    h.note("fault", what="poison", job=1)
    claim(h, 1, "a")
    make(h, 2)
    h.wait(100)
    claim(h, 2, "b", node=SOUTH)


@legal(bounds={"poison_wait": 90, "wait": 10})
def a_poisonous_job_costs_the_others_a_little(h: History) -> None:
    make(h, 1)
    h.note("fault", what="poison", job=1)
    claim(h, 1, "a")
    make(h, 2)
    h.wait(60)
    claim(h, 2, "b", node=SOUTH)


@breaks("L8", bounds={"wait": 10})
def a_job_starves(h: History) -> None:
    make(h, 1)
    make(h, 2, priority=9)
    claim(h, 2, "a")
    settle(h, 2, "a")
    h.wait(20)
    make(h, 3, priority=9)
    claim(h, 3, "b")


@legal(bounds={"wait": 10})
def a_job_waits_where_it_has_to(h: History) -> None:
    make(h, 1, delay_seconds=60)
    make(h, 2, hold=True)
    make(h, 3)
    h.do("pause_queue", CLIENT)
    h.wait(20)
    h.do("resume_queue", CLIENT)
    claim(h, 3, "a")
    h.note("fault", what="store_away")
    make(h, 4)
    h.wait(20)
    heal(h)
    claim(h, 4, "b")
    settle(h, 4, "b", **ending())
