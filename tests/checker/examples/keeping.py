"""S1 to S3: what is in the store."""

from __future__ import annotations

from tests.checker.examples.telling import (
    CLIENT,
    NORTH,
    breaks,
    claim,
    ending,
    handler,
    legal,
    make,
    ran,
    row,
    settle,
)
from tests.checker.writing import History


@breaks("S1")
def an_acknowledged_job_is_gone(h: History) -> None:
    make(h, 1)
    make(h, 2)
    h.end()
    row(h, 1, "queued")


@breaks("S1", commits=(True,))
def an_acknowledged_settlement_was_never_written(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    call = h.call("settle", NORTH, job=1, token="a", **ending())
    h.note("reply", id=call, status="ok")
    h.end()
    row(h, 1, "running")


@legal()
def a_job_whose_enqueueing_nobody_heard_of_is_there_or_not(h: History) -> None:
    one = h.call("enqueue", CLIENT, kind="report", payload={"number": 1})
    h.commit(one, job=1)
    h.reply(one, "unknown")
    two = h.call("enqueue", CLIENT, kind="report", payload={"number": 2})
    h.reply(two, "unknown")
    h.end()
    row(h, 1, "queued")


@legal()
def a_refused_job_is_not_there(h: History) -> None:
    call = h.call("enqueue", CLIENT, kind="report", payload={"number": 1})
    h.reply(call, "refused")
    h.end()


@legal()
def a_failover_that_says_so_may_lose_the_last_jobs(h: History) -> None:
    make(h, 1)
    since = h.body[-1]["seq"] + 1
    make(h, 2)
    h.note("fault", what="failover", lost_since=since)
    make(h, 2, payload={"number": 3})  # its number is given again
    h.end()
    row(h, 1, "queued")
    row(h, 2, "queued", payload={"number": 3})


@legal()
def a_job_that_was_deleted_is_not_lost(h: History) -> None:
    make(h, 1)
    ran(h, 1)
    h.event("job.deleted", 1, state="succeeded")
    h.end()


@breaks("S1")
def a_failover_loses_more_than_it_says(h: History) -> None:
    make(h, 1)
    make(h, 2)
    h.note("fault", what="failover", lost_since=h.body[-1]["seq"] + 1)
    h.end()
    row(h, 1, "queued")


@breaks("S2")
def a_job_that_nobody_asked_for(h: History) -> None:
    make(h, 1)
    h.end()
    row(h, 1, "queued")
    row(h, 2, "queued")


@breaks("S2")
def one_request_made_two_jobs(h: History) -> None:
    make(h, 1)
    h.end()
    row(h, 1, "queued")
    row(h, 2, "queued", payload={"number": 1})


@breaks("S2")
def a_payload_was_changed(h: History) -> None:
    make(h, 1)
    h.end()
    row(h, 1, "queued", payload={"number": 1.5})


@breaks("S2")
def a_handler_got_another_payload(h: History) -> None:
    make(h, 1, digest="aa")
    claim(h, 1, "a")
    handler(h, "begin", 1, "a", digest="bb")
    h.end()
    row(h, 1, "running", digest="aa")


@legal()
def keys_of_a_payload_may_come_in_another_order(h: History) -> None:
    make(h, 1, payload={"a": 1, "b": 2})
    h.end()
    row(h, 1, "queued", payload={"b": 2, "a": 1})


@legal()
def a_job_of_a_schedule_was_asked_for_by_nobody(h: History) -> None:
    h.do("fire", NORTH, {"job": 1}, schedule="nightly", slot="2030-01-01T02:30:00Z")
    h.do("cancel", CLIENT, {"state": "canceled"}, job=1)
    h.end()
    row(h, 1, "canceled")


@breaks("S3")
def a_second_job_with_the_key(h: History) -> None:
    make(h, 1, dedup_key="order-7")
    claim(h, 1, "a")
    make(h, 2, dedup_key="order-7")


@breaks("S3")
def a_second_job_with_a_key_for_ever(h: History) -> None:
    make(h, 1, dedup_key="order-7", dedup_scope="forever")
    claim(h, 1, "a")
    settle(h, 1, "a")
    make(h, 2, dedup_key="order-7", dedup_scope="forever")


@breaks("S3")
def two_jobs_with_one_key_in_the_end(h: History) -> None:
    make(h, 1, dedup_key="order-7")
    second = h.call("enqueue", CLIENT, kind="report", payload={"number": 2}, dedup_key="order-7")
    h.commit(second, job=2)
    h.reply(second, "unknown")
    h.end()
    row(h, 1, "running", dedup_key="order-7")
    row(h, 2, "queued", dedup_key="order-7")


@legal()
def the_key_is_free_once_its_job_has_ended(h: History) -> None:
    make(h, 1, dedup_key="order-7")
    claim(h, 1, "a")
    settle(h, 1, "a")
    make(h, 2, dedup_key="order-7")


@legal()
def the_request_came_again_and_got_the_same_job(h: History) -> None:
    first = h.call("enqueue", CLIENT, kind="report", payload={"number": 1}, dedup_key="order-7")
    h.commit(first, job=1)
    h.reply(first, "unknown")
    h.do(
        *("enqueue", CLIENT, {"job": 1, "new": False}),
        kind="report",
        payload={"number": 1},
        dedup_key="order-7",
    )
    h.end()
    row(h, 1, "queued")


@legal()
def the_key_may_be_free_while_the_end_is_under_way(h: History) -> None:
    make(h, 1, dedup_key="order-7")
    claim(h, 1, "a")
    end = h.call("settle", NORTH, job=1, token="a", **ending())
    h.commit(end)
    make(h, 2, dedup_key="order-7")
    h.reply(end)


@legal(commits=(True,), schedules=True)
def the_id_of_a_lost_job_is_that_of_a_scheduled_one_after_a_failover(h: History) -> None:
    make(h, 1)
    h.note("fault", what="failover", lost_since=1)
    h.do("fire", NORTH, {"job": 1}, schedule="nightly", slot="2030-01-01T00:00:00+00:00")
    claim(h, 1, "a")
    h.note("begin", job=1, attempt=1, who=NORTH, token="a", digest="0" * 64)
    h.end()
    h.final("job", id=1, state="running", payload={})
