"""Messages of jobs' ends: made with the end, taken by one at a time, told until settled."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from musterd.store.errors import InputRefused
from musterd.store.events import Event, EventFilter
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.outbox import Delivery, Message, MessageFilter, MessageRecord
from musterd.store.phases import KindRule
from tests.contract.job_tools import ending, look, put, settle, take_one
from tests.contract.rigs import Rig, closing_engine

URL = "https://example.com/hook"
HOLD_SECONDS = 45.0
ENDED_EVENTS = EventFilter(types=frozenset({"job.webhook_delivered", "job.webhook_failed"}))
GONE = "the receiver answered 410 earlier: nothing is sent there until somebody sends again"


async def ended(rig: Rig, state: JobState = JobState.SUCCEEDED, **options: Any) -> int:
    """A job that has come to its end, with a webhook unless told otherwise."""
    values: dict[str, Any] = {"webhook": URL, **options}
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("report", **values)])
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim, state))
    return job_id


async def taken(rig: Rig, count: int = 10) -> list[Message]:
    return await rig.engine.outbox.take(uuid4(), count, HOLD_SECONDS)


async def take_message(rig: Rig) -> Message:
    (message,) = await taken(rig)
    return message


async def listed(rig: Rig, **which: Any) -> list[MessageRecord]:
    return await rig.engine.outbox.messages(MessageFilter(**which))


async def told(rig: Rig) -> list[Event]:
    await rig.engine.events.order()
    return list((await rig.engine.events.read(0, ENDED_EVENTS)).events)


def delivered(message: Message, status: int = 200) -> Delivery:
    return Delivery(message.id, message.token, True, status, None, None)


def refused(message: Message, retry_seconds: float | None, *, gone: bool = False) -> Delivery:
    status = 410 if gone else 503
    return Delivery(message.id, message.token, False, status, "busy", retry_seconds, gone)


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
async def test_the_end_of_a_job_leaves_one_message(rig: Rig, state: JobState) -> None:
    job_id = await ended(rig, state)
    message = await take_message(rig)
    assert (message.job_id, message.url, message.type) == (job_id, URL, f"job.{state}")
    assert (message.attempt, message.tries, message.body) == (1, 1, None)
    assert message.message_id.startswith("msg_")
    assert len(message.message_id) == len("msg_") + 32
    assert message.age_seconds >= 0


async def test_a_job_without_a_webhook_leaves_none(rig: Rig) -> None:
    await ended(rig, webhook=None)
    assert await taken(rig) == []
    assert await rig.engine.outbox.next_due_seconds() is None


async def test_a_waiting_job_that_is_canceled_leaves_one(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("report", webhook=URL)])
    await rig.engine.control.apply(Action.CANCEL, job_id)
    assert (await take_message(rig)).type == "job.canceled"


async def test_a_jobs_own_url_goes_before_its_kinds_and_that_before_everybodys(rig: Rig) -> None:
    rules = {"report": KindRule(webhook="https://k/"), "": KindRule(webhook="https://all/")}
    await rig.engine.nodes.declare_kinds(rules)
    await ended(rig, webhook="https://own/")
    await ended(rig, webhook=None)
    await rig.engine.nodes.declare_kinds({"report": KindRule()})
    last = await ended(rig, webhook=None)
    found = await taken(rig)
    assert [one.url for one in found] == ["https://own/", "https://k/", "https://all/"]
    record = await rig.engine.jobs.get(last)
    assert record is not None
    assert record.webhook is not None
    assert (record.webhook.url, record.webhook.sent_at) == ("https://all/", None)


async def test_a_job_is_shown_no_receiver_of_another_kind(rig: Rig) -> None:
    await rig.engine.nodes.declare_kinds({"mail": KindRule(webhook="https://k/")})
    for kind, url in (("report", None), ("mail", "https://k/")):
        (job_id,) = await put(rig.engine, 0, kind=kind)
        found = (await look(rig, job_id)).webhook
        assert (found and found.url) == url


async def test_what_one_holds_no_other_gets_until_its_time_is_over(shared: Rig) -> None:
    await ended(shared)
    first = await take_message(shared)
    async with closing_engine(shared.another()) as other:
        await other.open()
        assert await other.outbox.take(uuid4(), 10, HOLD_SECONDS) == []
        seconds = await other.outbox.next_due_seconds()
        assert seconds is not None
        assert 0 < seconds <= HOLD_SECONDS
    shared.pass_time(HOLD_SECONDS + 1)
    again = await take_message(shared)
    assert (again.id, again.message_id, again.tries) == (first.id, first.message_id, 2)
    assert await shared.engine.outbox.settle([delivered(first)]) == frozenset()
    assert await shared.engine.outbox.settle([delivered(again)]) == {again.id}


async def test_as_many_as_asked_for_are_taken_the_longest_due_first(rig: Rig) -> None:
    ids = [await ended(rig) for _ in range(3)]
    first, second = await taken(rig, 2)
    (third,) = await taken(rig, 2)
    assert [one.job_id for one in (first, second, third)] == ids


async def test_a_delivery_is_written_told_and_shown(rig: Rig) -> None:
    job_id = await ended(rig, target="disk")
    message = await take_message(rig)
    assert await rig.engine.outbox.settle([delivered(message, 204)]) == {message.id}
    (event,) = await told(rig)
    assert (event.type, event.job_id) == ("job.webhook_delivered", job_id)
    assert (event.kind, event.target) == ("report", "disk")
    assert event.data == {"url": URL, "attempts": 1, "status": 204}
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.webhook is not None
    assert (record.webhook.attempts, record.webhook.sent_at is None) == (1, False)
    (shown,) = await listed(rig, state="delivered")
    assert (shown.message_id, shown.status, shown.ended_at is None) == (
        message.message_id,
        204,
        False,
    )
    assert await rig.engine.outbox.settle([delivered(message)]) == frozenset()
    assert len(await told(rig)) == 1


async def test_a_try_that_failed_comes_again_when_it_was_told_to(rig: Rig) -> None:
    await ended(rig)
    first = await take_message(rig)
    await rig.engine.outbox.settle([refused(first, 20.0)])
    assert await taken(rig) == []
    seconds = await rig.engine.outbox.next_due_seconds()
    assert seconds is not None
    assert 15 < seconds <= 20
    (shown,) = await listed(rig)
    assert (shown.state, shown.tries, shown.status, shown.error) == ("waiting", 1, 503, "busy")
    rig.pass_time(21)
    again = await take_message(rig)
    assert (again.message_id, again.tries) == (first.message_id, 2)
    assert again.age_seconds > 20
    assert again.created_at <= first.created_at + timedelta(milliseconds=1)
    assert await told(rig) == []


async def test_the_last_try_that_failed_is_told(rig: Rig) -> None:
    job_id = await ended(rig)
    await rig.engine.outbox.settle([refused(await take_message(rig), None)])
    (event,) = await told(rig)
    assert (event.type, event.job_id) == ("job.webhook_failed", job_id)
    assert event.data == {"url": URL, "attempts": 1, "error": "busy"}
    assert await rig.engine.outbox.next_due_seconds() is None


async def test_a_receiver_that_is_gone_gets_nothing_more(rig: Rig) -> None:
    for _ in range(3):
        await ended(rig)
    await ended(rig, webhook="https://other/")
    first, held = await taken(rig, 2)
    await rig.engine.outbox.settle([refused(first, None, gone=True)])
    late = await ended(rig)  # is made when it is known to be gone
    states = {one.job_id: (one.state, one.error) for one in await listed(rig)}
    assert states[1] == ("failed", "busy")
    assert states[held.job_id] == ("waiting", None)
    assert states[3] == states[late] == ("failed", GONE)
    (other,) = await taken(rig)
    assert other.url == "https://other/"
    assert sorted(str(event.job_id) for event in await told(rig)) == ["1", "3", str(late)]


async def test_what_failed_is_sent_again_with_a_fresh_start(rig: Rig) -> None:
    await ended(rig)
    message = await take_message(rig)
    rig.pass_time(100)
    again = await take_message(rig)
    await rig.engine.outbox.settle([refused(again, None, gone=True)])
    assert await rig.engine.outbox.resend([message.id, 4711]) == {message.id}
    fresh = await take_message(rig)
    assert (fresh.message_id, fresh.tries) == (message.message_id, 1)
    assert fresh.age_seconds < 50
    await ended(rig)
    assert len(await taken(rig)) == 1  # its receiver counts as there again


async def test_what_was_delivered_is_sent_again_too_and_what_is_held_is_left(rig: Rig) -> None:
    await ended(rig)
    message = await take_message(rig)
    assert await rig.engine.outbox.resend([message.id]) == {message.id}
    assert await taken(rig) == []
    assert await rig.engine.outbox.settle([delivered(message)]) == {message.id}
    assert await rig.engine.outbox.resend([message.id]) == {message.id}
    assert (await take_message(rig)).message_id == message.message_id


async def test_what_a_courier_that_died_had_in_hand_is_sent_again_with_a_fresh_start(
    rig: Rig,
) -> None:
    await ended(rig)
    message = await take_message(rig)
    rig.pass_time(HOLD_SECONDS)
    assert await rig.engine.outbox.resend([message.id]) == {message.id}
    again = await take_message(rig)
    assert again.tries == 1
    assert again.age_seconds < HOLD_SECONDS / 2


async def test_what_waits_for_its_next_try_is_sent_now_if_asked_for(rig: Rig) -> None:
    await ended(rig)
    message = await take_message(rig)
    await rig.engine.outbox.settle([refused(message, 3000.0)])
    await rig.engine.outbox.resend([message.id])
    assert (await take_message(rig)).tries == 1


async def test_a_job_that_is_resumed_and_ends_again_is_told_again(rig: Rig) -> None:
    job_id = await ended(rig, JobState.FAILED)
    await rig.engine.outbox.settle([delivered(await take_message(rig))])
    await rig.engine.control.apply(Action.RESUME, job_id)
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim))
    second = await take_message(rig)
    assert (second.type, second.attempt) == ("job.succeeded", 2)
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.webhook is not None
    assert record.webhook.sent_at is None  # of the newest


async def test_messages_are_listed_by_what_is_asked_for(rig: Rig) -> None:
    first = await ended(rig)
    await ended(rig, webhook="https://other/")
    await rig.engine.outbox.settle([delivered((await taken(rig, 1))[0])])
    assert [one.job_id for one in await listed(rig)] == [2, 1]
    assert [one.job_id for one in await listed(rig, limit=1)] == [2]
    newest = (await listed(rig, limit=1))[0].id
    assert [one.job_id for one in await listed(rig, before_id=newest)] == [1]
    assert [one.job_id for one in await listed(rig, state="waiting")] == [2]
    assert [one.job_id for one in await listed(rig, url="https://other/")] == [2]
    assert [one.job_id for one in await listed(rig, job_id=first)] == [first]


async def test_nothing_is_made_with_a_url_that_is_too_long(rig: Rig) -> None:
    with pytest.raises(InputRefused):
        await rig.engine.jobs.enqueue([NewJob("report", webhook="https://a/" + "x" * 2000)])
