"""S15: what was asked of jobs in hand."""

from __future__ import annotations

from tests.checker.examples.story import NORTH, Story, breaks, ending, legal


@breaks("S15")
def a_canceled_job_is_claimed(h: Story) -> None:
    h.claim_in_spite_of("cancel", "canceled")


@breaks("S15")
def a_retry_forgets_the_cancel(h: Story) -> None:
    h.take()
    h.control("cancel", 1, "running", asked=True)
    h.settle(1, "a", **ending("queued"))
    h.claim(1, "b", 2)


@breaks("S15")
def a_lost_lease_forgets_the_pause(h: Story) -> None:
    h.take()
    h.control("pause", 1, "running", asked=True)
    h.lapse()
    h.claim(1, "b", 2)


@breaks("S15")
def the_handler_of_a_canceled_job_begins(h: Story) -> None:
    h.make(1)
    h.control("cancel", 1, "canceled")
    h.handler("begin", 1, "a")


@legal()
def a_claim_is_heard_of_after_the_clock_was_put_forward_and_its_job_canceled(h: Story) -> None:
    """Its lease had ended by then on the store's clock, and by nobody else's."""
    h.take()
    h.note("fault", what="clock", who="store", seconds=30)
    h.reap(1, state="paused")
    h.control("cancel", 1, "canceled")
    h.handler("begin", 1, "a")


@breaks("S15")
def a_claim_is_heard_of_after_its_job_was_canceled(h: Story) -> None:
    h.make(1)
    h.note("fault", what="clock", who="store", seconds=30)
    h.claim(1, "a")
    h.wait(31)
    h.reap(1, state="paused")
    h.control("cancel", 1, "canceled")
    h.handler("begin", 1, "a")


@breaks("S15", bounds={"tell": 3})
def the_handler_hears_of_the_cancel_too_late(h: Story) -> None:
    h.make(1)
    h.handler("begin", 1, "a")
    h.control("cancel", 1, "running", asked=True)
    h.wait(5)
    h.handler("told", 1, "a")


@breaks("S15")
def handlers_tell_of_two_more_attempts_after_the_cancel(h: Story) -> None:
    h.make(1)
    h.handler("begin", 1, "a")
    h.control("cancel", 1, "running", asked=True)
    h.handler("begin", 1, "b", 2)  # it may have been in hand
    h.handler("begin", 1, "c", 3)


@legal()
def the_holder_of_the_next_attempt_but_one_hears_of_its_claim_after_the_cancel(h: Story) -> None:
    h.run()
    h.handler("end", 1, "a", outcome="failure")
    h.settle(1, "a", **ending("queued"))
    h.claim(1, "b", 2)  # and given back, never begun
    h.settle(1, "b", **ending("queued", 2, outcome="released", forgive=True))
    h.claim(1, "c", 3)
    h.control("cancel", 1, "assigned", asked=True)
    h.handler("begin", 1, "c", 3)


@breaks("S15")
def in_the_end_nobody_has_canceled_it(h: Story) -> None:
    h.make(1)
    h.control("cancel", 1, "running", asked=True)
    h.finish("queued")


@legal(bounds={"tell": 3})
def a_job_that_was_to_be_canceled_fails(h: Story) -> None:
    h.run()
    h.control("cancel", 1, "running", asked=True)
    h.handler("end", 1, "a", outcome="failure")
    h.settle(1, "a", **ending("failed"))
    h.control("resume", 1, "queued")  # which forgets the cancel
    h.claim(1, "b", 2)
    h.handler("begin", 1, "b", 2)
    h.wait(9)
    h.settle(1, "b", **ending("queued", 2))
    h.finish("queued")


@legal(bounds={"tell": 3})
def the_handler_died_before_its_job_was_canceled(h: Story) -> None:
    h.run()
    h.note("fault", what="kill", node="north")
    h.note("fault", what="heal")
    h.control("cancel", 1, "running", asked=True)
    h.wait(9)


@legal(bounds={"tell": 3})
def a_handler_that_had_been_told_to_stop_is_canceled(h: Story) -> None:
    h.run()
    h.note("told", job=1, attempt=1)
    h.control("cancel", 1, "running", asked=True)
    h.wait(9)
    h.handler("end", 1, "a", outcome="stopped")


@breaks("S15")
def a_success_is_turned_into_a_cancel(h: Story) -> None:
    h.take()
    h.control("cancel", 1, "running", asked=True)
    h.do("settle", NORTH, {"state": "canceled"}, job=1, token="a", **ending())


@breaks("S15")
def a_retry_is_turned_into_a_pause_that_nobody_wanted(h: Story) -> None:
    h.take()
    h.do("settle", NORTH, {"state": "paused"}, job=1, token="a", **ending("queued"))


@legal()
def a_retry_is_turned_into_the_cancel(h: Story) -> None:
    h.take()
    h.control("cancel", 1, "running", asked=True)
    h.do("settle", NORTH, {"state": "canceled"}, job=1, token="a", **ending("queued"))
    h.finish("canceled")
