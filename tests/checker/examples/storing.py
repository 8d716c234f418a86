"""S18 to S20: who is told, what is deleted, what is counted."""

from __future__ import annotations

from tests.checker.examples.story import NORTH, SOUTH, Story, breaks, legal

WEBHOOK = {"url": "https://shop.example/hook", "sent_at": None, "attempts": 0}


def message(h: Story, webhook_id: str, job: int, type_: str, state: str = "delivered") -> None:
    h.final("message", webhook_id=webhook_id, job_id=job, type=type_, state=state, attempts=1)


def delivery(h: Story, webhook_id: str, job: int, type_: str, status: int = 200) -> None:
    h.note("delivery", message=webhook_id, job=job, type=type_, status=status)


@breaks("S18")
def an_end_that_nobody_is_told_of(h: Story) -> None:
    h.end()
    h.row(1, "succeeded", webhook=WEBHOOK)
    message(h, "m0", 2, "job.stale")


@breaks("S18")
def an_end_that_is_told_by_two_messages(h: Story) -> None:
    h.end()
    h.row(1, "failed", webhook=WEBHOOK)
    message(h, "m1", 1, "job.failed")
    message(h, "m2", 1, "job.failed")


@breaks("S18")
def two_messages_with_one_id(h: Story) -> None:
    h.end()
    h.row(1, "failed", webhook=WEBHOOK)
    h.row(2, "failed", webhook=WEBHOOK)
    message(h, "m1", 1, "job.failed")
    message(h, "m1", 2, "job.failed")


@breaks("S18")
def delivered_and_nobody_got_it(h: Story) -> None:
    delivery(h, "m1", 1, "job.succeeded", 503)
    h.end()
    h.row(1, "succeeded", webhook=WEBHOOK)
    message(h, "m1", 1, "job.succeeded")


@breaks("S18")
def told_of_what_is_not_in_the_store(h: Story) -> None:
    delivery(h, "m1", 1, "job.succeeded")
    h.end()
    h.row(1, "running", webhook=WEBHOOK)
    message(h, "m0", 2, "job.stale", "waiting")


@legal()
def a_message_that_came_twice_has_one_id(h: Story) -> None:
    delivery(h, "m1", 1, "job.succeeded", 500)
    delivery(h, "m1", 1, "job.succeeded")
    delivery(h, "m1", 1, "job.succeeded")
    h.end()
    h.row(1, "succeeded", webhook=WEBHOOK)
    message(h, "m1", 1, "job.succeeded")


@legal()
def a_resumed_job_is_told_of_twice(h: Story) -> None:
    h.ran(1, "job.failed")
    h.event("job.resumed", 1)
    h.event("job.started", 1, attempt=2, node="north", worker=1)
    h.event("job.succeeded", 1, attempt=2)
    h.end()
    h.row(1, "succeeded", webhook=WEBHOOK)
    message(h, "m1", 1, "job.failed")
    message(h, "m2", 1, "job.succeeded", "waiting")


@breaks("S19", retention={"succeeded": 60})
def deleted_too_early(h: Story) -> None:
    h.take()
    h.settle(1, "a")
    h.wait(59)
    h.do("delete", NORTH, {"jobs": [1]})


@breaks("S19", retention={"succeeded": 60}, commits=(True,))
def deleted_before_it_had_ended(h: Story) -> None:
    h.make(1)
    h.take(2, "a", priority=1)
    h.wait(100)
    h.do("delete", NORTH, {"jobs": [1]})


@breaks("S19", retention={"succeeded": 60})
def events_tell_of_an_early_deletion(h: Story) -> None:
    h.ran(1)
    h.wait(50)
    h.event("job.deleted", 1, state="succeeded")


@breaks("S19", retention={"failed": 60})
def a_job_that_halts_its_target_is_deleted(h: Story) -> None:
    h.event("job.enqueued", 1, target="shop")
    h.event("job.started", 1, target="shop", attempt=1, node="north")
    h.event("job.failed", 1, target="shop", attempt=1)
    h.wait(70)
    h.event("job.deleted", 1, target="shop", state="failed")


@breaks("S19", retention={"succeeded": 60})
def deleted_with_a_message_still_to_be_sent(h: Story) -> None:
    h.ran(1)
    h.wait(70)
    h.event("job.deleted", 1, state="succeeded")
    h.end()
    message(h, "m1", 1, "job.succeeded", "waiting")


@legal(retention={"succeeded": 60})
def deleted_in_time_though_its_end_was_written_late(h: Story) -> None:
    h.take()
    h.note("begin", job=1, attempt=1, who=NORTH, token="a")
    h.note("end", job=1, attempt=1, who=NORTH, token="a", outcome="success")
    h.wait(20)
    h.settle(1, "a")
    h.wait(41)
    h.do("delete", NORTH, {"jobs": [1]})


@legal(commits=(True,))
def the_id_of_a_job_with_a_webhook_is_that_of_another_after_a_failover(h: Story) -> None:
    h.make(1, webhook=True)
    h.note("fault", what="failover", lost_since=1)
    h.take()
    h.settle(1, "a")
    h.finish("succeeded")


@legal(retention={"succeeded": 60})
def deleted_a_minute_after_work_that_could_be_told_of_only_later(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north", at=1)
    h.event("job.succeeded", 1, attempt=1, at=10)  # it had ended at 2, when the store was away
    h.event("job.deleted", 1, state="succeeded", at=62)


@breaks("S19", retention={"succeeded": 60})
def deleted_before_its_receiver_was_told(h: Story) -> None:
    h.make(1, webhook=True)
    h.ran(1)
    h.wait(70)
    h.event("job.deleted", 1, state="succeeded")


@legal(retention={"succeeded": 60})
def deleted_after_its_receivers_were_told_or_given_up(h: Story) -> None:
    for job, how in ((1, "delivered"), (2, "failed")):
        h.make(job, webhook=True)
        h.ran(job)
        h.event(f"job.webhook_{how}", job)
        h.wait(70)
        h.event("job.deleted", job, state="succeeded")


@legal(retention={"succeeded": 60, "failed": 60})
def deleted_in_time(h: Story) -> None:
    h.ran(1)
    h.event("job.enqueued", 2, target="shop")
    h.event("job.started", 2, target="shop", attempt=1, node="north")
    h.event("job.failed", 2, target="shop", attempt=1)
    h.event("job.cleared", 2, target="shop")
    h.wait(70)
    h.event("job.deleted", 1, state="succeeded")
    h.event("job.deleted", 2, target="shop", state="failed")
    h.end()
    message(h, "m1", 1, "job.deleted", "waiting")


@legal(retention={"succeeded": 60})
def deleted_at_its_time(h: Story) -> None:
    h.take()
    h.settle(1, "a")
    h.wait(61)
    h.do("delete", NORTH, {"jobs": [1]})


@breaks("S20")
def the_store_counts_wrong(h: Story) -> None:
    h.end()
    h.row(1, "queued")
    h.final("counts", by_state={"queued": 2}, enqueued=2)


@breaks("S20")
def an_event_of_an_enqueueing_is_missing(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.end()
    h.final("counts", by_state={"queued": 2}, enqueued=2)


@breaks("S20")
def events_and_table_differ(h: Story) -> None:
    h.ran(1)
    h.finish("running")


@breaks("S20")
def events_know_a_job_that_the_table_has_not(h: Story) -> None:
    h.ran(1)
    h.event("job.enqueued", 2)
    h.finish("succeeded")


@breaks("S20")
def the_last_step_of_a_row_and_the_table_differ(h: Story) -> None:
    h.note("edge", job=1, to="queued", **{"from": None})
    h.finish("running")


@legal()
def all_is_counted(h: Story) -> None:
    h.note("edge", job=3, to="pending", **{"from": None})
    h.note("edge", job=1, to="queued", **{"from": None})
    h.note("edge", job=1, to="running", **{"from": "queued"})
    h.note("edge", job=1, to="succeeded", **{"from": "running"})
    h.ran(1)
    h.ran(2, "job.failed")
    h.event("job.enqueued", 3, state="pending")
    h.event("job.deleted", 2, state="failed")
    h.event("job.from_the_future", 1)
    h.end()
    h.row(1, "succeeded")
    h.row(3, "pending")
    h.final("counts", by_state={"succeeded": 1, "pending": 1}, enqueued=3)


@legal()
def a_canceled_job_with_no_attempt(h: Story) -> None:
    h.make(1)
    h.control("cancel", 1, "canceled")
    h.event("job.enqueued", 1)
    h.event("job.canceled", 1, reason="canceled on request")
    h.finish("canceled")


def take_message(h: Story, token: str, node: str = NORTH) -> None:
    h.do("take_messages", node, {"messages": [7]}, token=token, seconds=30.0)


def settle_message(h: Story, token: str, node: str = NORTH) -> None:
    h.do("settle_message", node, message=7, token=token)


@breaks("S18")
def a_message_is_taken_from_its_courier(h: Story) -> None:
    take_message(h, "a")
    h.wait(29)
    take_message(h, "b", SOUTH)


@breaks("S18")
def what_a_late_courier_says_is_taken(h: Story) -> None:
    take_message(h, "a")
    h.wait(31)
    take_message(h, "b", SOUTH)
    settle_message(h, "a")


@breaks("S18")
def what_came_of_a_message_is_said_twice(h: Story) -> None:
    take_message(h, "a")
    settle_message(h, "a")
    settle_message(h, "a")


@legal()
def a_courier_is_late_and_another_one_goes(h: Story) -> None:
    take_message(h, "a")
    h.wait(31)
    take_message(h, "b", SOUTH)
    h.reply(h.call("settle_message", NORTH, message=7, token="a"), "stale")
    settle_message(h, "b", SOUTH)
    take_message(h, "c")
    settle_message(h, "c")


@legal(commits=(False,))
def a_message_that_may_have_been_settled_is_taken_again(h: Story) -> None:
    take_message(h, "a")
    h.reply(h.call("settle_message", NORTH, message=7, token="a"), "unknown")
    take_message(h, "b", SOUTH)


@legal(commits=(False,))
def a_message_is_taken_twice_while_nobody_answers(h: Story) -> None:
    slow = h.call("take_messages", NORTH, token="a", seconds=30.0)
    h.wait(31)
    other = h.call("take_messages", SOUTH, token="b", seconds=30.0)
    h.reply(other, messages=[7])
    h.reply(slow, messages=[7])


@legal(commits=(False,))
def a_courier_hears_late_of_what_it_took_first(h: Story) -> None:
    slow = h.call("take_messages", SOUTH, token="a", seconds=30.0)
    h.wait(31)
    take_message(h, "b")
    h.wait(31)
    h.reply(slow, messages=[7])
    settle_message(h, "b")


@legal()
def a_message_is_taken_early_by_a_clock_that_was_put_forward(h: Story) -> None:
    take_message(h, "a")
    h.note("fault", what="clock", who="store", seconds=20)
    h.wait(11)
    take_message(h, "b", SOUTH)
    settle_message(h, "b", SOUTH)


@legal()
def a_failover_forgets_who_has_a_message(h: Story) -> None:
    take_message(h, "a")
    h.note("fault", what="failover", lost_since=1)
    take_message(h, "b", SOUTH)
    settle_message(h, "b", SOUTH)
