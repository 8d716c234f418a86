"""Telling others of the end of jobs, on a clock that jumps."""

import logging
import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import trio

from musterd.config.credentials import SigningKeys
from musterd.config.secrets import signing_key
from musterd.manager.duties.duty import REST_AFTER_SECONDS
from musterd.manager.webhooks.courier import Courier, Post
from musterd.manager.webhooks.postman import LOOK_SECONDS, LOOK_SECONDS_RESTING, Postman
from musterd.store.lifecycle import Action
from musterd.store.outbox import Delivery
from musterd.workers.runners.http_messages import Answer
from tests.contract.job_tools import ending, settle, take_one
from tests.support.receiver import (
    OTHER,
    SECRET,
    SIGNED,
    URL,
    Receiver,
    message,
    messages,
    received,
)
from tests.support.receiver_checks import is_genuine
from tests.support.stage import Stage, live_settings, until
from tests.support.stage_idle_scan import wall_clock

DAY_SECONDS = 86_400


async def types(stage: Stage) -> list[str]:
    return [event.type for event in (await stage.store.engine.events.read(0)).events]


async def test_the_end_of_a_job_is_told_soon_and_signed(stage: Stage) -> None:
    receiver = received(stage)
    node = await stage.start(**SIGNED)
    job_id = await stage.put_one("noop", webhook=URL)
    await until(lambda: receiver.got, within_seconds=2)
    (got,) = receiver.got
    assert (got.url, got.json["type"]) == (URL, "job.succeeded")
    assert (got.json["data"]["id"], got.json["data"]["state"]) == (job_id, "succeeded")
    assert is_genuine(SECRET, got.headers, got.body, now=wall_clock())
    assert got.headers["user-agent"].startswith("musterd/")
    await until(lambda: node.metric("webhooks_total", result="delivered") == 1)
    found = await message(stage)
    assert (found.state, found.tries, found.status) == ("delivered", 1, 204)
    assert got.headers["webhook-id"] == found.message_id
    told = [type_ for type_ in await types(stage) if type_.startswith("job.")]
    assert told[-2:] == ["job.succeeded", "job.webhook_delivered"]


async def test_where_the_node_knows_of_a_webhook_it_is_told_at_once(stage: Stage) -> None:
    receiver = received(stage)
    await stage.start(webhooks__url=URL, **SIGNED)
    await stage.put("noop")
    assert await until(lambda: receiver.got) < 0.5


async def test_each_kind_of_end_is_told_once(stage: Stage) -> None:
    receiver = received(stage)
    await stage.start(**SIGNED)
    for kind in ("noop", "broken", "declined", "stubborn"):
        await stage.put(kind, webhook=URL)
    await until(lambda: len(receiver.got) == 4)
    await trio.sleep(100)
    said = sorted((got.json["type"], got.json["data"]["attempt"]) for got in receiver.got)
    assert said == [
        *(("job.canceled", 1), ("job.failed", 1), ("job.failed", 4), ("job.succeeded", 1)),
    ]


async def test_what_nobody_of_this_node_ended_is_told_too(stage: Stage) -> None:
    receiver = received(stage)
    await stage.start(**SIGNED)
    job_id = await stage.put_one("noop", webhook=URL, hold=True)
    await stage.store.engine.control.apply(Action.CANCEL, job_id)
    assert await until(lambda: receiver.got) <= LOOK_SECONDS + 0.1
    assert receiver.got[0].json["data"]["reason"] == "canceled on request"


async def test_it_is_retried_for_three_days_then_it_has_failed(stage: Stage) -> None:
    receiver = Receiver(always=500)
    said: list[Delivery] = []
    await stage.put("noop", webhook=URL)
    await settle(stage.store.engine, ending(await take_one(stage.store.engine)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(postman(stage, receiver, said.append).run)
        await trio.sleep(4 * DAY_SECONDS)
        nursery.cancel_scope.cancel()
    times = [got.at for got in receiver.got]
    assert 2.8 * DAY_SECONDS < times[-1] - times[0] <= 3 * DAY_SECONDS
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert max(pauses[:4]) < 45
    assert 3000 < max(pauses) < 3640
    assert 72 < len(times) < 250
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert all(is_genuine(SECRET, got.headers, got.body) for got in receiver.got)
    stamps = [int(got.headers["webhook-timestamp"]) for got in receiver.got]
    assert stamps[-1] - stamps[0] == pytest.approx(times[-1] - times[0], abs=2)
    found = await message(stage)
    assert (found.state, found.tries) == ("failed", len(times))
    assert found.error == "answered with status 500 Internal Server Error"
    assert (await types(stage)).count("job.webhook_failed") == 1
    assert [one.retry_seconds is None for one in said] == [*([False] * (len(times) - 1)), True]


def postman(stage: Stage, post: Post, told: Callable[[Delivery], None]) -> Postman:
    """One alone, without a node: for what takes days."""
    engine, log = stage.store.engine, logging.getLogger("musterd.stage.postman")
    keys = SigningKeys((signing_key(SECRET),))
    courier = Courier(engine.jobs.get, lambda _: None, "default", lambda: keys, post, log)
    return Postman(
        engine.outbox, courier, live_settings(), lambda one, _: told(one), log, random.Random(1)
    )


async def test_a_receiver_that_says_when_is_obeyed(stage: Stage) -> None:
    busy = Answer(503, {"retry-after": "60"}, b"", overflowed=False)
    receiver = received(stage, busy)
    await stage.start(**SIGNED)
    await stage.put("noop", webhook=URL)
    await until(lambda: len(receiver.got) == 2, 100)
    first, second = receiver.got
    assert 60 <= second.at - first.at < 62


async def test_a_receiver_that_was_down_gets_it_when_it_is_up(stage: Stage) -> None:
    receiver = received(stage, None, None, None)
    node = await stage.start(**SIGNED)
    await stage.put("noop", webhook=URL)
    await until(lambda: len(receiver.got) == 4, 200)
    await trio.sleep(1)
    assert (await message(stage)).state == "delivered"
    assert node.metric("webhooks_total", result="retried") == 3


async def test_a_receiver_that_takes_too_long_has_not_got_it(stage: Stage) -> None:
    receiver = received(stage, 1000.0)
    await stage.start(**SIGNED)
    await stage.put("noop", webhook=URL)
    await until(lambda: receiver.got)
    await trio.sleep(15.1)
    found = await message(stage)
    assert (found.state, found.error) == ("waiting", "no answer within 15 s")


async def test_a_slow_receiver_holds_up_no_other(stage: Stage) -> None:
    receiver = received(stage, 14.0)
    await stage.start(**SIGNED)
    await stage.put("noop", webhook=OTHER)
    await until(lambda: receiver.got)
    await stage.put("noop", webhook=URL)
    assert await until(lambda: len(receiver.got) == 2) < 2


async def test_so_many_at_once_and_not_more(stage: Stage) -> None:
    receiver = received(stage)
    node = await stage.start(webhooks__concurrency=3, **SIGNED)
    await stage.put("noop", 50, webhook=URL)
    await until(lambda: node.metric("webhooks_total", result="delivered") == 50)
    assert receiver.most_at_once == 3
    assert len(receiver.got) == 50


async def test_a_try_whose_result_is_refused_is_nobodys(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came too late: another node has the message, and will tell what came of it."""

    async def refuse(_deliveries: Sequence[Delivery]) -> frozenset[int]:
        await trio.lowlevel.checkpoint()
        return frozenset()

    monkeypatch.setattr(stage.store.engine.outbox, "settle", refuse)
    receiver = received(stage)
    node = await stage.start(**SIGNED)
    await stage.put_one("noop", webhook=URL)
    await until(lambda: len(receiver.got) == 1)
    await trio.sleep(1)
    assert node.metric("webhooks_total", result="delivered") == 0


async def test_a_receiver_that_is_gone_is_left_alone(stage: Stage) -> None:
    receiver = received(stage, 410)
    node = await stage.start(webhooks__concurrency=1, **SIGNED)
    await stage.put("noop", 5, webhook=URL)
    await until(lambda: node.metric("webhooks_total", result="failed"))
    await trio.sleep(20)
    await stage.put("noop", webhook=URL)
    await trio.sleep(20)
    assert len(receiver.got) == 1
    assert {one.state for one in await messages(stage)} == {"failed"}


async def test_without_a_secret_it_is_sent_unsigned_and_said_once(stage: Stage) -> None:
    receiver = received(stage)
    node = await stage.start()
    await stage.put("noop", 3, webhook=URL)
    await until(lambda: len(receiver.got) == 3)
    assert "webhook-signature" not in receiver.got[0].headers
    assert len(node.events.named("webhooks are not signed")) == 1


async def test_a_url_that_is_not_allowed_is_not_sent_to(stage: Stage) -> None:
    receiver = received(stage)
    await stage.start(**SIGNED)
    await stage.put("noop", webhook="http://example.com/")
    await trio.sleep(5)
    assert receiver.got == []
    found = await message(stage)
    assert found.state == "failed"
    assert "allow_http = true" in str(found.error)


async def test_a_node_with_nothing_to_tell_asks_seldom(stage: Stage) -> None:
    received(stage)
    node = await stage.start(**SIGNED)
    await trio.sleep(10)

    def looks() -> float:
        name = "store_operation_seconds_count"
        return sum(
            node.metric(name, operation=f"outbox_{what}") for what in ("next_due_seconds", "take")
        )

    before = looks()
    await trio.sleep(600)
    assert looks() - before <= 600 / (0.8 * LOOK_SECONDS) + 1
    node.tenancy().idleness.begin_scan(lambda: None)
    await trio.sleep(REST_AFTER_SECONDS + LOOK_SECONDS)
    before = looks()
    await trio.sleep(600)
    assert looks() - before <= 600 / (0.8 * LOOK_SECONDS_RESTING) + 1
