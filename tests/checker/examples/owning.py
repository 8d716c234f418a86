"""S4 to S7: whose a job is, and who may write."""

from __future__ import annotations

from tests.checker.examples.story import NORTH, SOUTH, Story, breaks, ending, legal


@breaks("S4")
def claimed_while_it_was_in_hand(h: Story) -> None:
    h.take()
    h.wait(100)
    h.claim(1, "b", 2, SOUTH)


@breaks("S4")
def events_tell_of_two_hands(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("job.started", 1, attempt=2, node="south")


@legal()
def claimed_again_after_each_kind_of_end(h: Story) -> None:
    h.take()
    h.settle(1, "a", **ending("queued"))
    h.claim(1, "b", 2)
    h.do("give_back", NORTH, job=1, token="b", attempt=2)
    h.claim(1, "c", 3, SOUTH)
    h.wait(31)
    h.reap(1, 3)
    h.claim(1, "d", 4)
    h.settle(1, "d", **ending(attempt=4))


@legal()
def the_reply_of_a_settlement_was_lost_and_it_had_been_written(h: Story) -> None:
    h.take()
    call = h.call("settle", NORTH, job=1, token="a", **ending("queued"))
    h.commit(call)
    h.reply(call, "unknown")
    h.claim(1, "b", 2, SOUTH)
    late = h.call("settle", NORTH, job=1, token="a", **ending("queued"))
    h.reply(late, "stale")
    h.settle(1, "b", SOUTH, **ending(attempt=2))


def claim_unheard(h: Story) -> None:
    h.make(1)
    call = h.call("claim", NORTH, token="a", lease_seconds=30)
    h.commit(call, jobs=[{"job": 1, "attempt": 1}])
    h.reply(call, "unknown")


@legal()
def a_claim_whose_reply_was_lost_is_read_back(h: Story) -> None:
    claim_unheard(h)
    h.do("read_back", NORTH, {"jobs": [{"job": 1, "attempt": 1}]}, token="a")
    h.renew(1, "a")
    h.settle(1, "a")


@legal()
def a_claim_that_nobody_heard_of_runs_out(h: Story) -> None:
    claim_unheard(h)
    h.lapse()
    h.claim(1, "b", 2, SOUTH)
    h.settle(1, "b", SOUTH, **ending(attempt=2))


@legal()
def a_request_that_arrives_late_claims_late(h: Story) -> None:
    h.make(1)
    late = h.call("claim", NORTH, token="a", lease_seconds=30)
    h.reply(late, "unknown")
    h.claim(1, "b", 1, SOUTH)
    h.settle(1, "b", SOUTH, **ending("queued"))
    h.commit(late, jobs=[{"job": 1, "attempt": 2}])
    h.wait(31)
    h.reap(1, 2)
    h.claim(1, "c", 3, SOUTH)


@legal()
def the_next_claim_is_heard_of_before_the_end_that_allowed_it(h: Story) -> None:
    h.take()
    end = h.call("settle", NORTH, job=1, token="a", **ending("queued"))
    h.commit(end)
    h.claim(1, "b", 2, SOUTH)
    h.reply(end)
    h.settle(1, "b", SOUTH, **ending(attempt=2))


@breaks("S5")
def a_token_is_used_again(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.claim(1, "a")
    h.claim(2, "a")


@breaks("S5")
def two_attempts_with_one_token(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.handler("begin", 1, "a", 2)


@breaks("S5")
def two_nodes_with_one_token(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.handler("begin", 2, "a", who=SOUTH)


@legal()
def one_claim_takes_many_jobs_under_one_token(h: Story) -> None:
    h.make(1)
    h.make(2)
    jobs = [{"job": 1, "attempt": 1}, {"job": 2, "attempt": 1}]
    h.do("claim", NORTH, {"jobs": jobs}, token="a", lease_seconds=30)
    h.settle(2, "a")
    h.settle(1, "a")


@breaks("S6")
def a_late_renewal_is_taken(h: Story) -> None:
    h.take()
    h.move()
    h.renew(1, "a")


@breaks("S6")
def a_late_settlement_is_taken(h: Story) -> None:
    h.take()
    h.move()
    h.settle(1, "a")


@breaks("S6")
def progress_is_taken_after_the_job_was_given_back(h: Story) -> None:
    h.take()
    h.do("give_back", NORTH, job=1, token="a", attempt=1)
    h.do("progress", NORTH, job=1, token="a")


@breaks("S6")
def a_write_under_a_token_of_nobody(h: Story) -> None:
    h.take()
    h.do("start", NORTH, job=1, token="z")


@breaks("S6")
def after_a_failover_an_attempts_number_is_no_fence(h: Story) -> None:
    h.make(1)
    since = h.body[-1]["seq"] + 1
    h.claim(1, "a")
    h.note("fault", what="failover", lost_since=since)
    h.claim(1, "b", 1, SOUTH)
    h.settle(1, "a")


@breaks("S6")
def events_tell_of_an_end_by_an_earlier_attempt(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("job.requeued", 1, attempt=1, outcome="lost", at=90)
    h.event("job.started", 1, attempt=2, node="south", at=91)
    h.event("job.succeeded", 1, attempt=1, at=92)


@legal()
def a_late_settlement_is_refused(h: Story) -> None:
    h.take()
    h.move()
    call = h.call("settle", NORTH, job=1, token="a", **ending())
    h.reply(call, "stale")
    h.settle(1, "b", SOUTH, **ending(attempt=2))


@legal()
def a_failover_takes_the_later_claim_back(h: Story) -> None:
    h.take()
    h.wait(31)
    since = h.body[-1]["seq"] + 1
    h.reap(1)
    h.claim(1, "b", 2, SOUTH)
    h.note("fault", what="failover", lost_since=since)
    h.settle(1, "a")
    late = h.call("settle", SOUTH, job=1, token="b", **ending(attempt=2))
    h.reply(late, "stale")


@breaks("S7")
def reaped_before_the_lease_had_run_out(h: Story) -> None:
    h.take()
    h.wait(20)
    h.renew(1, "a")
    h.lapse(20)


@breaks("S7", commits=(False,))
def reaped_while_a_renewal_was_under_way_that_was_taken(h: Story) -> None:
    h.take()
    h.wait(31)
    call = h.call("renew", NORTH, job=1, token="a", lease_seconds=30)
    h.reap(1)
    h.reply(call)


@breaks("S7", lease_seconds=30)
def events_tell_of_an_early_loss(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north", at=10)
    h.event("job.requeued", 1, attempt=1, outcome="lost", at=35)


@legal(lease_seconds=30, statement_seconds=3)
def the_event_of_a_claim_comes_at_the_end_of_a_slow_statement(h: Story) -> None:
    """A held snapshot, a busy machine: its lease counts from the statement's beginning."""
    h.event("job.enqueued", 1)
    h.event("job.assigned", 1, attempt=1, node="north", at=10)
    h.event("job.requeued", 1, attempt=1, outcome="lost", at=39.845)


@breaks("S7", lease_seconds=30, statement_seconds=3)
def no_statement_takes_so_long(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.assigned", 1, attempt=1, node="north", at=10)
    h.event("job.requeued", 1, attempt=1, outcome="lost", at=36.9)


@legal()
def the_stores_clock_was_put_forward(h: Story) -> None:
    h.take()
    h.wait(10)
    h.note("fault", what="clock", who="store", seconds=25)
    h.reap(1)


@legal(embedded=True)
def a_daemon_that_starts_ends_the_leases_of_a_dead_one(h: Story) -> None:
    h.take()
    h.note("fault", what="kill", node="north")
    h.do("take_over", NORTH)
    h.reap(1, node=NORTH)
    h.claim(1, "b", 2)


@legal(lease_seconds=30)
def events_of_a_lease_that_ran_out(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north", at=10)
    h.event("job.requeued", 1, attempt=1, outcome="lost", at=41)
