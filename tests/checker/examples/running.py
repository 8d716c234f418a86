"""S17, S21, L1 to L3: duties, crews, and that jobs end."""

from __future__ import annotations

from typing import Any

from tests.checker.examples.story import NORTH, SOUTH, Story, breaks, legal
from tests.checker.writing import stamp

SLOT = "2030-01-01T02:30:00Z"
DUTY: dict[str, Any] = {"duty": "reaping", "lease_seconds": 10}


def take(h: Story, term: str, node: str = NORTH) -> None:
    h.do("take_duty", node, term=term, **DUTY)


def heal(h: Story) -> None:
    h.note("fault", what="heal")


@breaks("S17")
def a_duty_is_taken_from_who_has_it(h: Story) -> None:
    take(h, "x")
    h.wait(8)
    h.do("renew_duty", NORTH, term="x", **DUTY)
    h.wait(8)
    take(h, "y", SOUTH)


@breaks("S17")
def a_term_is_had_twice(h: Story) -> None:
    take(h, "x")
    h.do("release_duty", NORTH, term="x", duty="reaping")
    take(h, "x", SOUTH)


@breaks("S17")
def an_old_term_is_renewed(h: Story) -> None:
    take(h, "x")
    h.wait(11)
    take(h, "y", SOUTH)
    h.do("renew_duty", NORTH, term="x", **DUTY)


@breaks("S17", duty_trust_seconds=1)
def a_duty_is_done_after_its_lease(h: Story) -> None:
    take(h, "x")
    h.wait(9.5)
    h.note("act", duty="reaping", term="x")


@breaks("S17", duty_trust_seconds=1, duty_look_seconds=0.1)
def a_duty_is_done_long_after_its_holder_has_woken_up(h: Story) -> None:
    take(h, "x")
    h.freeze(11)
    h.note("act", duty="reaping", term="x")  # it was under way
    h.wait(0.3)
    h.note("act", duty="reaping", term="x")
    h.wait(0.1)
    h.note("act", duty="reaping", term="x")


@legal(duty_trust_seconds=1, duty_look_seconds=0.1)
def a_duty_goes_on_until_its_holder_looks_at_its_clock(h: Story) -> None:
    take(h, "x")
    h.freeze(11)
    h.note("act", duty="reaping", term="x")
    h.wait(0.05)
    h.note("act", duty="reaping", term="x")


@legal(commits=(False,))
def a_duty_is_had_twice_while_nobody_answers(h: Story) -> None:
    slow = h.call("take_duty", NORTH, term="x", **DUTY)
    h.wait(11)
    other = h.call("take_duty", SOUTH, term="y", **DUTY)
    h.reply(other)
    h.reply(slow)


@breaks("S17", commits=(True,))
def a_duty_is_done_that_was_released(h: Story) -> None:
    take(h, "x")
    h.do("release_duty", NORTH, term="x", duty="reaping")
    h.note("act", duty="reaping", term="x")


@breaks("S17")
def a_duty_is_done_under_no_term(h: Story) -> None:
    take(h, "x")
    h.note("act", duty="reaping", term="z")


@breaks("S17")
def a_slot_makes_two_jobs(h: Story) -> None:
    h.do("fire", NORTH, {"job": 1}, schedule="nightly", slot=SLOT)
    h.do("fire", SOUTH, {"job": 2}, schedule="nightly", slot=SLOT)


@breaks("S17")
def a_schedule_counts_jobs_that_nobody_made(h: Story) -> None:
    h.do("fire", NORTH, {"job": 1}, schedule="nightly", slot=SLOT)
    h.end()
    h.final("schedule", name="nightly", fired=2)


@legal(duty_trust_seconds=1)
def a_duty_goes_from_hand_to_hand(h: Story) -> None:
    take(h, "x")
    h.note("act", duty="reaping", term="x")
    h.do("release_duty", NORTH, term="x", duty="reaping")
    take(h, "y", SOUTH)
    h.note("fault", what="freeze", node="south")
    h.wait(11)
    take(h, "z")
    h.note("fault", what="thaw", node="south")
    h.note("act", duty="reaping", term="y")  # it was under way
    call = h.call("renew_duty", SOUTH, term="y", **DUTY)
    h.reply(call, "stale")
    release = h.call("release_duty", NORTH, term="z", duty="reaping")
    h.commit(release)
    h.reply(release, "unknown")
    take(h, "w", SOUTH)


@legal()
def who_comes_second_finds_the_slot_taken(h: Story) -> None:
    first = h.call("fire", NORTH, schedule="nightly", slot=SLOT)
    h.commit(first, job=1)
    h.reply(first, "unknown")
    second = h.call("fire", SOUTH, schedule="nightly", slot=SLOT)
    h.reply(second, "stale")
    h.do("fire", SOUTH, {"job": 2}, schedule="nightly", slot=None)
    h.do("fire", SOUTH, {"job": 3}, schedule="nightly", slot=None)
    h.end()
    h.final("schedule", name="nightly", fired=3)


@breaks("S21")
def a_crew_is_too_large(h: Story) -> None:
    h.note("crew", node="north", size=9, min=2, max=8)


@breaks("S21", bounds={"react": 2})
def a_crew_stays_below_its_floor(h: Story) -> None:
    h.note("crew", node="north", size=1, min=2, max=8)
    h.wait(3)
    h.note("crew", node="north", size=2, min=2, max=8)


@breaks("S21", grace_seconds=300)
def a_busy_worker_is_dismissed_too_early(h: Story) -> None:
    h.note("process", what="told", node="north")
    h.event("node.draining", None, node="north")
    h.wait(30)
    h.event("worker.dismissed", None, node="north", worker=1)


@breaks("S21", grace_seconds=300)
def a_busy_worker_is_dismissed_to_save_one(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.event("worker.dismissed", None, node="north", worker=1)


@legal(grace_seconds=300, bounds={"react": 2, "drain": 310})
def a_second_signal_dismisses_at_once(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.note("crew", node="north", size=1, min=2, max=8)
    h.note("crew", node="north", size=2, min=2, max=8)
    h.note("process", what="told", node="north")
    h.note("process", what="told", node="north", at_once=True)
    h.event("node.draining", None, node="north")
    h.event("worker.dismissed", None, node="north", worker=1)
    h.note("crew", node="north", size=0, min=2, max=8)
    h.wait(9)
    h.note("process", what="ended", node="north", children=0)


@breaks("L1", bounds={"end": 60})
def a_job_never_ends(h: Story) -> None:
    h.make(1)
    h.note("fault", what="kill", node="north")
    heal(h)
    h.wait(61)
    heal(h)
    h.wait(61)
    h.make(2)
    h.end()
    h.row(1, "queued", run_at=stamp(0))
    h.row(2, "queued", run_at=stamp(h.t))


@legal(bounds={"end": 60})
def jobs_that_need_not_end(h: Story) -> None:
    heal(h)
    h.wait(61)
    h.note("crew", node="north", size=2, min=2, max=8)
    h.end()
    h.row(1, "queued", run_at=stamp(h.t + 100))
    h.row(2, "paused", target="shop")
    h.row(3, "queued", target="shop", run_at=stamp(0))
    h.row(4, "pending")
    h.row(5, "succeeded")


@legal(bounds={"end": 60})
def faults_that_never_end(h: Story) -> None:
    h.note("fault", what="store_away")
    h.wait(100)
    h.note("fault", what="store_away")
    h.finish("running")


@breaks("L2", bounds={"reclaim": 35})
def a_dead_node_keeps_its_job(h: Story) -> None:
    h.take()
    h.note("fault", what="kill", node="north")
    heal(h)
    h.lapse(40)


@legal(bounds={"reclaim": 35})
def a_dead_node_loses_its_job(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.claim(1, "a")
    h.claim(2, "b", node=SOUTH)
    h.note("fault", what="store_away")
    h.note("fault", what="kill", node="north")
    h.wait(300)
    heal(h)
    h.lapse(5)


@breaks("L3", bounds={"duty": 15})
def nobody_takes_a_duty(h: Story) -> None:
    take(h, "x")
    h.note("fault", what="kill", node="north")
    heal(h)
    h.wait(20)
    take(h, "y", SOUTH)


@legal(bounds={"duty": 15})
def a_duty_is_taken_in_time(h: Story) -> None:
    take(h, "x")
    h.note("fault", what="kill", node="north")
    h.wait(5)
    heal(h)
    h.wait(14)
    take(h, "y", SOUTH)


@legal(bounds={"duty": 15, "reclaim": 15})
def leases_of_the_dead_stand_longer_for_a_clock_that_is_put_back(h: Story) -> None:
    """Also for one that was before they died: nothing is renewed after that."""
    h.take()
    take(h, "x")
    h.note("fault", what="clock", who="store", seconds=-20)
    h.wait(5)
    h.note("fault", what="kill", node="north")
    h.note("fault", what="clock", who="store", seconds=-20)
    heal(h)
    h.wait(50)
    take(h, "y", SOUTH)
    h.reap(1)


@breaks("L3", bounds={"duty": 15})
def a_clock_that_was_put_back_before_is_no_excuse(h: Story) -> None:
    h.note("fault", what="clock", who="store", seconds=-20)
    take(h, "x")
    h.note("fault", what="kill", node="north")
    heal(h)
    h.wait(20)
    take(h, "y", SOUTH)


@legal(grace_seconds=30)
def a_node_tells_late_that_it_drained(h: Story) -> None:
    h.event("node.started", None, node="north")
    h.note("process", what="told", node="north")
    h.wait(31)
    h.event("node.draining", None, node="north")
    h.event("worker.dismissed", None, node="north", worker=1)
    h.note("process", what="ended", node="north", children=0)
