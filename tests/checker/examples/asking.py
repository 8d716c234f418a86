"""S15: what was asked of jobs in hand."""

from __future__ import annotations

from tests.checker.examples.telling import (
    NORTH,
    breaks,
    claim,
    control,
    ending,
    handler,
    legal,
    make,
    reap,
    row,
    settle,
)
from tests.checker.writing import History


@breaks("S15")
def a_canceled_job_is_claimed(h: History) -> None:
    make(h, 1)
    control(h, "cancel", 1, "canceled")
    claim(h, 1, "a")


@breaks("S15")
def a_retry_forgets_the_cancel(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    control(h, "cancel", 1, "running", asked=True)
    settle(h, 1, "a", **ending("queued"))
    claim(h, 1, "b", 2)


@breaks("S15")
def a_lost_lease_forgets_the_pause(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    control(h, "pause", 1, "running", asked=True)
    h.wait(31)
    reap(h, 1)
    claim(h, 1, "b", 2)


@breaks("S15")
def the_handler_of_a_canceled_job_begins(h: History) -> None:
    make(h, 1)
    control(h, "cancel", 1, "canceled")
    handler(h, "begin", 1, "a")


@legal()
def a_claim_is_heard_of_after_the_clock_was_put_forward_and_its_job_canceled(h: History) -> None:
    """Its lease had ended by then on the store's clock, and by nobody else's."""
    make(h, 1)
    claim(h, 1, "a")
    h.note("fault", what="clock", who="store", seconds=30)
    reap(h, 1, state="paused")
    control(h, "cancel", 1, "canceled")
    handler(h, "begin", 1, "a")


@breaks("S15")
def a_claim_is_heard_of_after_its_job_was_canceled(h: History) -> None:
    make(h, 1)
    h.note("fault", what="clock", who="store", seconds=30)
    claim(h, 1, "a")
    h.wait(31)
    reap(h, 1, state="paused")
    control(h, "cancel", 1, "canceled")
    handler(h, "begin", 1, "a")


@breaks("S15", bounds={"tell": 3})
def the_handler_hears_of_the_cancel_too_late(h: History) -> None:
    make(h, 1)
    handler(h, "begin", 1, "a")
    control(h, "cancel", 1, "running", asked=True)
    h.wait(5)
    handler(h, "told", 1, "a")


@breaks("S15")
def handlers_tell_of_two_more_attempts_after_the_cancel(h: History) -> None:
    make(h, 1)
    handler(h, "begin", 1, "a")
    control(h, "cancel", 1, "running", asked=True)
    handler(h, "begin", 1, "b", 2)  # it may have been in hand
    handler(h, "begin", 1, "c", 3)


@legal()
def the_holder_of_the_next_attempt_but_one_hears_of_its_claim_after_the_cancel(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    handler(h, "end", 1, "a", outcome="failure")
    settle(h, 1, "a", **ending("queued"))
    claim(h, 1, "b", 2)  # and given back, never begun
    settle(h, 1, "b", **ending("queued", 2, outcome="released", forgive=True))
    claim(h, 1, "c", 3)
    control(h, "cancel", 1, "assigned", asked=True)
    handler(h, "begin", 1, "c", 3)


@breaks("S15")
def in_the_end_nobody_has_canceled_it(h: History) -> None:
    make(h, 1)
    control(h, "cancel", 1, "running", asked=True)
    h.end()
    row(h, 1, "queued")


@legal(bounds={"tell": 3})
def a_job_that_was_to_be_canceled_fails(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    control(h, "cancel", 1, "running", asked=True)
    handler(h, "end", 1, "a", outcome="failure")
    settle(h, 1, "a", **ending("failed"))
    control(h, "resume", 1, "queued")  # which forgets the cancel
    claim(h, 1, "b", 2)
    handler(h, "begin", 1, "b", 2)
    h.wait(9)
    settle(h, 1, "b", **ending("queued", 2))
    h.end()
    row(h, 1, "queued")


@legal(bounds={"tell": 3})
def the_handler_died_before_its_job_was_canceled(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.note("fault", what="kill", node="north")
    h.note("fault", what="heal")
    control(h, "cancel", 1, "running", asked=True)
    h.wait(9)


@legal(bounds={"tell": 3})
def a_handler_that_had_been_told_to_stop_is_canceled(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.note("told", job=1, attempt=1)
    control(h, "cancel", 1, "running", asked=True)
    h.wait(9)
    handler(h, "end", 1, "a", outcome="stopped")


@breaks("S15")
def a_success_is_turned_into_a_cancel(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    control(h, "cancel", 1, "running", asked=True)
    h.do("settle", NORTH, {"state": "canceled"}, job=1, token="a", **ending())


@breaks("S15")
def a_retry_is_turned_into_a_pause_that_nobody_wanted(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    h.do("settle", NORTH, {"state": "paused"}, job=1, token="a", **ending("queued"))


@legal()
def a_retry_is_turned_into_the_cancel(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    control(h, "cancel", 1, "running", asked=True)
    h.do("settle", NORTH, {"state": "canceled"}, job=1, token="a", **ending("queued"))
    h.end()
    row(h, 1, "canceled")
