"""S1 to S3: what is in the store."""

from __future__ import annotations

from typing import Any

from tests.checker.examples.story import CLIENT, NORTH, Story, breaks, ending, legal

DELETED: dict[str, Any] = {"retention": {"succeeded": 5}}


@breaks("S1")
def an_acknowledged_job_is_gone(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.finish("queued")


@breaks("S1", commits=(True,))
def an_acknowledged_settlement_was_never_written(h: Story) -> None:
    h.take()
    call = h.call("settle", NORTH, job=1, token="a", **ending())
    h.note("reply", id=call, status="ok")
    h.finish("running")


@legal()
def a_job_whose_enqueueing_nobody_heard_of_is_there_or_not(h: Story) -> None:
    one = h.call("enqueue", CLIENT, kind="report", payload={"number": 1})
    h.commit(one, job=1)
    h.reply(one, "unknown")
    two = h.call("enqueue", CLIENT, kind="report", payload={"number": 2})
    h.reply(two, "unknown")
    h.finish("queued")


@legal()
def a_refused_job_is_not_there(h: Story) -> None:
    call = h.call("enqueue", CLIENT, kind="report", payload={"number": 1})
    h.reply(call, "refused")
    h.end()


@legal()
def a_failover_that_says_so_may_lose_the_last_jobs(h: Story) -> None:
    h.make(1)
    since = h.body[-1]["seq"] + 1
    h.make(2)
    h.note("fault", what="failover", lost_since=since)
    h.make(2, payload={"number": 3})  # its number is given again
    h.end()
    h.row(1, "queued")
    h.row(2, "queued", payload={"number": 3})


@legal(commits=(False,))
def the_number_of_a_lost_job_is_given_to_one_whose_request_was_not_answered(h: Story) -> None:
    """It has another payload, no target that is halted, and nobody is told of it."""
    h.make(1, target="disk", webhook=True)
    since = h.body[-1]["seq"] + 1
    h.make(2, target="disk", webhook=True)
    h.note("fault", what="failover", lost_since=since)
    h.reply(h.call("enqueue", CLIENT, kind="report", payload={"number": 3}), "unknown")
    h.ran(1, "job.failed")
    h.wait(10)
    h.ran(2)
    h.end()
    h.row(1, "failed")
    h.row(2, "succeeded", payload={"number": 3})
    h.final("message", webhook_id="m", job_id=1, type="job.failed", state="delivered")


@legal()
def a_job_that_was_deleted_is_not_lost(h: Story) -> None:
    h.make(1)
    h.ran(1)
    h.event("job.deleted", 1, state="succeeded")
    h.end()


@breaks("S1")
def a_failover_loses_more_than_it_says(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.note("fault", what="failover", lost_since=h.body[-1]["seq"] + 1)
    h.finish("queued")


def two_rows_for_one_request(h: Story, **second: Any) -> None:
    h.make(1)
    h.end()
    h.row(1, "queued")
    h.row(2, "queued", **second)


@breaks("S2")
def a_job_that_nobody_asked_for(h: Story) -> None:
    two_rows_for_one_request(h)


@breaks("S2")
def one_request_made_two_jobs(h: Story) -> None:
    two_rows_for_one_request(h, payload={"number": 1})


@breaks("S2")
def a_payload_was_changed(h: Story) -> None:
    h.make(1)
    h.end()
    h.row(1, "queued", payload={"number": 1.5})


@breaks("S2")
def a_handler_got_another_payload(h: Story) -> None:
    h.take(digest="aa")
    h.handler("begin", 1, "a", digest="bb")
    h.end()
    h.row(1, "running", digest="aa")


@legal()
def keys_of_a_payload_may_come_in_another_order(h: Story) -> None:
    h.make(1, payload={"a": 1, "b": 2})
    h.end()
    h.row(1, "queued", payload={"b": 2, "a": 1})


@legal()
def a_job_of_a_schedule_was_asked_for_by_nobody(h: Story) -> None:
    h.do("fire", NORTH, {"job": 1}, schedule="nightly", slot="2030-01-01T02:30:00Z")
    h.do("cancel", CLIENT, {"state": "canceled"}, job=1)
    h.finish("canceled")


@breaks("S3")
def a_second_job_with_the_key(h: Story) -> None:
    h.take(dedup_key="order-7")
    h.make(2, dedup_key="order-7")


@breaks("S3")
def a_second_job_with_a_key_for_ever(h: Story) -> None:
    h.take(dedup_key="order-7", dedup_scope="forever")
    h.settle(1, "a")
    h.make(2, dedup_key="order-7", dedup_scope="forever")


def end_and_delete_the_job_of_a_key(h: Story, scope: str | float) -> None:
    h.take(dedup_key="order-7", dedup_scope=scope)
    h.settle(1, "a")
    h.wait(9)
    h.do("delete", NORTH, {"jobs": [1]})


@breaks("S3", **DELETED)
def a_key_for_ever_is_deleted_with_its_job(h: Story) -> None:
    end_and_delete_the_job_of_a_key(h, "forever")
    h.make(2, dedup_key="order-7")


@breaks("S3", **DELETED)
def a_key_for_a_time_is_deleted_with_its_job(h: Story) -> None:
    end_and_delete_the_job_of_a_key(h, 20.0)
    h.make(2, dedup_key="order-7")


@legal(**DELETED)
def a_key_is_free_once_its_time_is_over(h: Story) -> None:
    end_and_delete_the_job_of_a_key(h, 20.0)
    h.wait(12)
    h.make(2, dedup_key="order-7")


@legal(**DELETED)
def the_key_of_an_unfinished_job_is_free_when_that_is_deleted(h: Story) -> None:
    end_and_delete_the_job_of_a_key(h, "until_finished")
    h.make(2, dedup_key="order-7")


@breaks("S3")
def two_jobs_with_one_key_in_the_end(h: Story) -> None:
    h.make(1, dedup_key="order-7")
    second = h.call("enqueue", CLIENT, kind="report", payload={"number": 2}, dedup_key="order-7")
    h.commit(second, job=2)
    h.reply(second, "unknown")
    h.end()
    h.row(1, "running", dedup_key="order-7")
    h.row(2, "queued", dedup_key="order-7")


@legal()
def the_key_is_free_once_its_job_has_ended(h: Story) -> None:
    h.take(dedup_key="order-7")
    h.settle(1, "a")
    h.make(2, dedup_key="order-7")


@legal()
def the_request_came_again_and_got_the_same_job(h: Story) -> None:
    first = h.call("enqueue", CLIENT, kind="report", payload={"number": 1}, dedup_key="order-7")
    h.commit(first, job=1)
    h.reply(first, "unknown")
    h.do(
        *("enqueue", CLIENT, {"job": 1, "new": False}),
        kind="report",
        payload={"number": 1},
        dedup_key="order-7",
    )
    h.finish("queued")


@legal()
def the_key_may_be_free_while_the_end_is_under_way(h: Story) -> None:
    h.take(dedup_key="order-7")
    end = h.call("settle", NORTH, job=1, token="a", **ending())
    h.commit(end)
    h.make(2, dedup_key="order-7")
    h.reply(end)


@legal(commits=(True,), schedules=True)
def the_id_of_a_lost_job_is_that_of_a_scheduled_one_after_a_failover(h: Story) -> None:
    h.make(1)
    h.note("fault", what="failover", lost_since=1)
    h.do("fire", NORTH, {"job": 1}, schedule="nightly", slot="2030-01-01T00:00:00+00:00")
    h.claim(1, "a")
    h.note("begin", job=1, attempt=1, who=NORTH, token="a", digest="0" * 64)
    h.end()
    h.final("job", id=1, state="running", payload={})
