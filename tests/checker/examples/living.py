"""L4 to L8: that it goes on."""

from __future__ import annotations

from tests.checker.examples.story import CLIENT, SOUTH, Story, breaks, ending, legal


def heal(h: Story) -> None:
    h.note("fault", what="heal")


def work(h: Story, jobs: range, pause: float) -> None:
    for job in jobs:
        h.make(job)
        h.claim(job, str(job))
        h.settle(job, str(job))
        h.wait(pause)


def work_and_lose_the_store(h: Story) -> None:
    work(h, range(1, 41), 0.5)
    h.note("fault", what="store_away")
    h.wait(20)
    h.note("fault", what="store_back")
    heal(h)


@breaks("L4", bounds={"recovery": 30})
def it_stays_slow_after_an_outage(h: Story) -> None:
    work_and_lose_the_store(h)
    work(h, range(41, 71), 2)


@legal(bounds={"recovery": 30})
def it_is_slow_for_a_while_after_an_outage(h: Story) -> None:
    work_and_lose_the_store(h)
    work(h, range(41, 51), 2.9)
    work(h, range(51, 91), 0.5)


@legal(bounds={"drain": 10})
def told_while_it_was_frozen(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="freeze", node="north")
    h.note("process", what="told", node="north")
    h.wait(50)
    h.note("fault", what="thaw", node="north")
    h.note("process", what="ended", node="north", children=0)


@breaks("L5", bounds={"drain": 10})
def a_drain_takes_too_long(h: Story) -> None:
    h.drain(seconds=20)


@breaks("L5", bounds={"drain": 10})
def a_child_is_left_behind(h: Story) -> None:
    h.drain(children=1)


@legal(bounds={"drain": 10})
def a_frozen_node_drains_later(h: Story) -> None:
    h.note("process", what="told", node="north")
    h.freeze(20)
    h.note("process", what="ended", node="north", children=0)


@breaks("L6", bounds={"restart": 30})
def nobody_restarts_a_stuck_node(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="wedge", node="north")
    h.wait(60)
    h.note("crew", node="south", size=2, min=2, max=8)


@legal(bounds={"restart": 30})
def the_watchdog_restarts_a_stuck_node(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="wedge", node="north")
    h.wait(20)
    h.note("process", what="ended", node="north")
    h.note("process", what="started", node="north")


def wait_beside_a_poisonous_job(h: Story, seconds: float) -> None:
    h.make(1)
    h.note("fault", what="poison", job=1)
    h.claim(1, "a")
    h.make(2)
    h.wait(seconds)
    h.claim(2, "b", node=SOUTH)


@breaks("L7", bounds={"poison_wait": 90, "wait": 10})
def a_poisonous_job_holds_the_others_up(h: Story) -> None:
    wait_beside_a_poisonous_job(h, 100)


@legal(bounds={"poison_wait": 90, "wait": 10})
def a_poisonous_job_costs_the_others_a_little(h: Story) -> None:
    wait_beside_a_poisonous_job(h, 60)


@breaks("L8", bounds={"wait": 10})
def a_job_starves(h: Story) -> None:
    h.make(1)
    h.take(2, "a", priority=9)
    h.settle(2, "a")
    h.wait(20)
    h.take(3, "b", priority=9)


@legal(bounds={"wait": 10})
def a_job_waits_where_it_has_to(h: Story) -> None:
    h.make(1, delay_seconds=60)
    h.make(2, hold=True)
    h.make(3)
    h.do("pause_queue", CLIENT)
    h.wait(20)
    h.do("resume_queue", CLIENT)
    h.claim(3, "a")
    h.note("fault", what="store_away")
    h.make(4)
    h.wait(20)
    heal(h)
    h.claim(4, "b")
    h.settle(4, "b", **ending())
