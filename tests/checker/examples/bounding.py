"""S11, S13 and S14: not too many, not too early, not now."""

from __future__ import annotations

from tests.checker.examples.story import CLIENT, NORTH, SOUTH, Story, breaks, ending, legal
from tests.checker.writing import stamp


@breaks("S11", caps={"": 2})
def three_in_hand_where_two_may_be(h: Story) -> None:
    for job in (1, 2, 3):
        h.make(job)
        h.claim(job, str(job))


@breaks("S11", caps={"": 9, "report": 1})
def an_expired_job_counts_as_well(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.claim(1, "a")
    h.wait(100)
    h.claim(2, "b")


@breaks("S11", caps={"report": 1})
def events_tell_of_two_in_hand_for_long(h: Story) -> None:
    for job in (1, 2):
        h.event("job.enqueued", job)
        h.event("job.started", job, attempt=1, node="north")
    h.wait(10)
    h.event("job.enqueued", 3)


@legal(caps={"": 1})
def one_after_the_other_under_a_cap(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.claim(1, "a")
    end = h.call("settle", NORTH, job=1, token="a", **ending())
    h.commit(end)
    h.claim(2, "b", node=SOUTH)
    h.reply(end)
    lost = h.call("settle", SOUTH, job=2, token="b", **ending())
    h.commit(lost)
    h.reply(lost, "unknown")
    h.take(3, "c")


@legal(caps={"": 1})
def events_of_overlapping_transactions(h: Story) -> None:
    for job in (1, 2):
        h.event("job.enqueued", job)
    h.event("job.started", 1, attempt=1, node="north")
    h.wait(5)
    h.event("job.started", 2, attempt=1, node="south")
    h.event("job.succeeded", 1, attempt=1)
    h.wait(5)
    h.event("job.succeeded", 2, attempt=1)


@breaks("S13")
def claimed_before_it_was_due(h: Story) -> None:
    h.make(1, delay_seconds=10)
    h.wait(9)
    h.claim(1, "a")


@breaks("S13")
def a_retry_comes_too_soon(h: Story) -> None:
    h.take()
    h.settle(1, "a", **ending("queued", delay_seconds=4))
    h.wait(3)
    h.claim(1, "b", 2)


def is_due_at_20_and_starts_again(h: Story, at: float) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("job.retrying", 1, attempt=1, run_at=stamp(20))
    h.event("job.started", 1, attempt=2, node="north", at=at)


@breaks("S13")
def events_tell_of_a_retry_too_soon(h: Story) -> None:
    is_due_at_20_and_starts_again(h, at=19)


@legal()
def a_delayed_job_is_resumed_and_due_at_once(h: Story) -> None:
    h.make(1, delay_seconds=100)
    h.control("pause", 1, "paused")
    h.control("resume", 1, "queued")
    h.claim(1, "a")


@breaks("S13")
def events_tell_of_a_start_before_the_delay_is_over(h: Story) -> None:
    h.make(1, delay_seconds=10)
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north", at=9)


@legal()
def events_tell_of_a_start_after_the_delay(h: Story) -> None:
    h.make(1, delay_seconds=10)
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north", at=11)
    h.make(2, delay_seconds=10)
    h.event("job.enqueued", 2, at=12)
    h.control("pause", 2, "paused")
    h.event("job.paused", 2, at=13)
    h.control("resume", 2, "queued")
    h.event("job.resumed", 2, at=14)
    h.event("job.started", 2, attempt=1, node="north", at=15)


@legal(commits=(False,))
def a_slow_request_is_delayed_from_its_beginning(h: Story) -> None:
    call = h.call("enqueue", CLIENT, kind="report", payload={}, delay_seconds=10)
    h.wait(1)
    h.reply(call, job=1)
    h.event("job.enqueued", 1, at=1)
    h.event("job.started", 1, attempt=1, node="north", at=10.5)


@legal()
def a_retry_comes_when_it_is_due(h: Story) -> None:
    is_due_at_20_and_starts_again(h, at=20)


@legal()
def the_clock_was_put_forward_so_it_is_due(h: Story) -> None:
    h.make(1, delay_seconds=100)
    h.note("fault", what="clock", who="store", seconds=99)
    h.wait(1)
    h.claim(1, "a")


@breaks("S14")
def a_node_that_drains_asks_for_work(h: Story) -> None:
    h.make(1)
    h.note("process", what="draining", node="north")
    h.claim(1, "a")


@breaks("S14")
def claimed_while_the_queue_was_paused(h: Story) -> None:
    h.make(1)
    h.do("pause_queue", CLIENT)
    h.claim(1, "a")


def start_one_while_draining(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("node.draining", None, node="north")
    h.wait(5)
    h.event("job.started", 1, attempt=1, node="north")


@breaks("S14")
def events_tell_of_a_claim_by_who_drains(h: Story) -> None:
    start_one_while_draining(h)


@breaks("S14")
def events_tell_of_a_claim_by_who_drains_and_has_stopped(h: Story) -> None:
    start_one_while_draining(h)
    h.event("node.stopped", None, node="north")
    h.event("node.started", None, node="north")


@legal()
def events_tell_of_a_claim_that_came_late(h: Story) -> None:
    h.make(1)
    h.event("job.enqueued", 1)
    early = h.call("claim", NORTH, token="a", lease_seconds=30)
    h.note("process", what="draining", node="north")
    h.event("node.draining", None, node="north")
    h.wait(5)
    h.reply(early, jobs=[{"job": 1, "attempt": 1}])
    h.event("job.started", 1, attempt=1, node="north")
    h.event("node.stopped", None, node="north")


@legal()
def a_node_says_that_it_has_started_again_after_its_first_claim(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.enqueued", 2)
    h.event("node.draining", None, node="north")
    h.event("node.stopped", None, node="north")
    h.wait(5)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("node.started", None, node="north")
    h.event("node.draining", None, node="north")
    h.wait(5)
    h.event("job.started", 2, attempt=1, node="north")
    h.event("node.started", None, node="north")


@legal()
def a_claim_that_was_under_way_when_the_queue_was_paused(h: Story) -> None:
    h.make(1)
    early = h.call("claim", NORTH, token="a", lease_seconds=30)
    h.do("pause_queue", CLIENT)
    h.note("process", what="draining", node="north")
    h.reply(early, jobs=[{"job": 1, "attempt": 1}])
    h.do("resume_queue", CLIENT)
    h.make(2)
    h.claim(2, "b", node=SOUTH)
    h.note("process", what="started", node="north")
    h.take(3, "c")


@legal()
def the_queue_is_paused_while_it_is_being_resumed(h: Story) -> None:
    h.make(1)
    h.do("pause_queue", CLIENT)
    resuming = h.call("resume_queue", CLIENT)
    pausing = h.call("pause_queue", CLIENT)
    h.commit(pausing)
    h.commit(resuming)  # the last word
    h.reply(resuming)
    h.reply(pausing)
    h.claim(1, "a")


@breaks("S14")
def the_queue_is_paused_after_it_was_resumed(h: Story) -> None:
    h.make(1)
    h.do("pause_queue", CLIENT)
    h.do("resume_queue", CLIENT)
    h.do("pause_queue", CLIENT)
    h.claim(1, "a")
