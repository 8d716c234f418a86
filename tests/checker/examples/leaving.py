"""M2 to M4: what is left to its lease, and what is taken first."""

from __future__ import annotations

from tests.checker.examples.telling import (
    LEASE_SECONDS,
    NORTH,
    SOUTH,
    breaks,
    claim,
    ending,
    legal,
    make,
    reap,
    settle,
)
from tests.checker.writing import History

SOON = {"read_back": 3}


def claim_unheard(h: History, job: int, token: str) -> None:
    call = h.call("claim", NORTH, token=token, lease_seconds=LEASE_SECONDS)
    h.commit(call, jobs=[{"job": job, "attempt": 1}])
    h.reply(call, "unknown")


@breaks("M2", bounds=SOON)
def nobody_asks_for_a_claim_without_a_reply(h: History) -> None:
    make(h, 1)
    make(h, 2)
    claim_unheard(h, 1, "a")
    h.wait(4)
    claim(h, 2, "b")


@breaks("M2", bounds=SOON)
def another_claim_is_asked_for(h: History) -> None:
    make(h, 1)
    claim_unheard(h, 1, "a")
    h.do("read_back", NORTH, {"jobs": []}, token="b")
    h.wait(4)
    h.do("read_back", NORTH, {"jobs": []}, token="c")


@breaks("M2", bounds=SOON)
def it_stood_still_and_then_asks_for_other_things(h: History) -> None:
    make(h, 1)
    claim_unheard(h, 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(4)
    h.note("fault", what="thaw", node="north")
    h.wait(4)
    h.do("claim", NORTH, {"jobs": []}, token="b", lease_seconds=LEASE_SECONDS)


@legal(bounds=SOON)
def a_claim_without_a_reply_is_asked_for(h: History) -> None:
    make(h, 1)
    claim_unheard(h, 1, "a")
    h.wait(2)
    h.do("read_back", NORTH, {"jobs": [{"job": 1, "attempt": 1}]}, token="a")
    h.wait(4)
    settle(h, 1, "a")


@legal(bounds=SOON)
def it_is_asked_for_as_soon_as_its_node_goes_on(h: History) -> None:
    make(h, 1)
    claim_unheard(h, 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(9)
    h.note("fault", what="thaw", node="north")
    call = h.call("read_back", NORTH, token="a")
    h.reply(call, "unknown")


@legal(bounds=SOON)
def whoever_claimed_has_ended(h: History) -> None:
    make(h, 1)
    claim_unheard(h, 1, "a")
    h.note("process", what="ended", node="north", children=0)
    h.note("process", what="started", node="north")
    h.wait(9)
    h.do("claim", NORTH, {"jobs": []}, token="b", lease_seconds=LEASE_SECONDS)


@breaks("M3")
def a_node_leaves_and_keeps_its_job(h: History) -> None:
    h.note("process", what="started", node="north")
    make(h, 1)
    claim(h, 1, "a")
    h.note("process", what="told", node="north")
    h.note("process", what="ended", node="north", children=0)
    h.wait(31)
    reap(h, 1)


@breaks("M3")
def a_node_lives_and_does_not_renew(h: History) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="line_cut", node="north")
    h.wait(1)
    h.note("fault", what="heal")
    make(h, 1)
    claim(h, 1, "a")
    h.wait(31)
    reap(h, 1)


@breaks("M3", stop_seconds=8)
def a_node_that_nobody_told_to_stop_lets_a_lease_run_out(h: History) -> None:
    h.note("process", what="started", node="north")
    make(h, 1)
    claim(h, 1, "a")
    h.wait(31)
    reap(h, 1)


@legal()
def a_node_dies_with_its_job(h: History) -> None:
    h.note("process", what="started", node="north")
    make(h, 1)
    claim(h, 1, "a")
    h.note("fault", what="kill", node="north")
    h.wait(31)
    reap(h, 1)


@legal()
def the_lease_was_had_before_it_became_calm(h: History) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="line_cut", node="north")
    make(h, 1)
    claim(h, 1, "a")
    h.note("fault", what="heal")
    h.wait(31)
    reap(h, 1)


@legal(stop_seconds=8)
def work_that_does_not_stop_is_left_behind(h: History) -> None:
    h.note("process", what="started", node="north")
    make(h, 1)
    claim(h, 1, "a")
    h.note("process", what="told", node="north")
    h.note("process", what="ended", node="north", children=0)
    h.wait(31)
    reap(h, 1)


@breaks("M4", commits=(True,))
def the_later_one_is_claimed_first(h: History) -> None:
    make(h, 1)
    make(h, 2)
    claim(h, 2, "a")


@breaks("M4", commits=(True,))
def the_less_urgent_one_is_claimed_first(h: History) -> None:
    make(h, 1)
    make(h, 2, priority=5)
    claim(h, 1, "a")


@breaks("M4", commits=(True,))
def a_claim_hands_out_the_later_one_first(h: History) -> None:
    make(h, 1)
    make(h, 2)
    jobs = [{"job": 2, "attempt": 1}, {"job": 1, "attempt": 1}]
    h.do("claim", NORTH, {"jobs": jobs}, token="a", lease_seconds=LEASE_SECONDS)


@legal(caps={"report": 1})
def one_has_no_room(h: History) -> None:
    make(h, 1)
    make(h, 2)
    make(h, 3, kind="other")
    claim(h, 1, "a")
    claim(h, 3, "b", node=SOUTH)


@legal()
def some_have_to_wait_and_others_come_first(h: History) -> None:
    make(h, 1, delay_seconds=9)
    make(h, 2, target="x")
    make(h, 3, hold=True)
    make(h, 4, priority=-1)
    make(h, 5)
    make(h, 6, priority=5)
    claim(h, 6, "a")
    claim(h, 5, "b")
    claim(h, 4, "c")


@legal()
def what_was_made_before_the_clock_was_put_back_may_come_later(h: History) -> None:
    make(h, 1)
    h.note("fault", what="clock", who="store", seconds=-60)
    make(h, 2)
    make(h, 3)
    claim(h, 2, "a")
    claim(h, 3, "b")
    settle(h, 2, "a", **ending())
