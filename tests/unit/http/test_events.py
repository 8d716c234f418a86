"""`GET /events` over real sockets: what is asked, what is refused, what a reader costs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
import trio

from musterd.store.events import NewEvent
from musterd.store.jobs import NewJob
from tests.support.leaks import no_leaks
from tests.support.sse_client import Refused, Stream, opened
from tests.support.web_scene import EVENT_READERS_MAX, Web, serving

T = TypeVar("T")


@asynccontextmanager
async def followed() -> AsyncGenerator[Web]:
    """A web side whose feed runs."""
    async with serving() as web, trio.open_nursery() as nursery:
        await nursery.start(web.feed.run)
        yield web
        nursery.cancel_scope.cancel()


async def far(call: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(call)


async def reader(web: Web, query: str = "", last_id: object = None, **headers: str) -> Stream:
    return await far(lambda: opened(web.address, query, last_id, headers=headers))


async def refusal(web: Web, query: str = "", last_id: object = None) -> int:
    with pytest.raises(Refused) as refused:
        await reader(web, query, last_id)
    return refused.value.status


async def test_a_snapshot_then_what_follows_it() -> None:
    async with followed() as web:
        await web.engine.jobs.enqueue([NewJob("report")])
        one = await reader(web)
        (snapshot,) = await far(lambda: one.take(1))
        assert (snapshot.name, snapshot.id, one.retry_ms) == ("snapshot", 1, 1_000)
        assert snapshot.data["position"] == 1
        assert set(snapshot.data) == {"healthy", "verdict", "node", "counts", "position"}
        await web.engine.jobs.enqueue([NewJob("noop")])
        (told,) = await far(lambda: one.take(1))
        assert (told.name, told.id) == ("job.enqueued", 2)
        assert set(told.data) == {"id", "at", "type", "tenant", "job_id", "kind", "data"}
        assert (told.data["job_id"], told.data["kind"], told.data["tenant"]) == (
            2,
            "noop",
            "default",
        )
        one.close()


async def test_its_answer_is_a_stream_that_nobody_keeps() -> None:
    async with followed() as web:
        one = await reader(web)
        assert one.headers["content-type"] == "text/event-stream"
        assert one.headers["cache-control"] == "no-store"
        one.close()
        head = await web.get("/events", method="HEAD")
        assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")


async def test_who_comes_again_gets_what_followed_and_no_snapshot() -> None:
    async with followed() as web:
        await web.engine.jobs.enqueue([NewJob("report")] * 4)
        one = await reader(web, last_id=2)
        assert [told.id for told in await far(lambda: one.take(2))] == [3, 4]
        other = await reader(web, "?last_event_id=3")
        assert [told.id for told in await far(lambda: other.take(1))] == [4]
        both = await reader(web, "?last_event_id=1", last_id=3)  # the header is the newer one
        assert [told.id for told in await far(lambda: both.take(1))] == [4]
        for each in (one, other, both):
            each.close()


async def test_a_stream_without_a_snapshot_begins_with_the_next_event() -> None:
    async with followed() as web:
        await web.engine.jobs.enqueue([NewJob("report")] * 2)
        one = await reader(web, "?snapshot=false")
        await web.engine.jobs.enqueue([NewJob("noop")])
        assert [told.id for told in await far(lambda: one.take(1))] == [3]
        one.close()


@pytest.mark.parametrize("last_id", [3, 2**70, -1, "x", "1.5", "²"])
async def test_an_id_that_the_log_does_not_have_gets_a_snapshot_with_a_gap(last_id: object) -> None:
    async with followed() as web:
        await web.engine.jobs.enqueue([NewJob("report")] * 2)
        one = await far(
            lambda: opened(web.address, f"?last_event_id={last_id}".replace("²", "%C2%B2"))
        )
        (snapshot,) = await far(lambda: one.take(1))
        assert (snapshot.name, snapshot.data["gap"], snapshot.data["position"]) == (
            "snapshot",
            True,
            2,
        )
        one.close()


async def test_what_has_been_forgotten_is_a_gap_and_what_is_left_is_none() -> None:
    async with followed() as web:
        await web.engine.jobs.enqueue([NewJob("report")])
        await web.engine.jobs.enqueue([NewJob("report")])
        await web.engine.events.trim(-1.0, 1)
        one, two = await reader(web, last_id=0), await reader(web, last_id=1)
        (snapshot,) = await far(lambda: one.take(1))
        assert (snapshot.id, snapshot.data["gap"]) == (2, True)
        assert [told.id for told in await far(lambda: two.take(1))] == [2]
        one.close()
        two.close()


async def test_filters_hold_for_what_was_missed_and_for_what_comes() -> None:
    async with followed() as web:
        await web.engine.jobs.enqueue(
            [NewJob("report"), NewJob("noop"), NewJob("noop", target="t")]
        )
        one = await reader(web, "?kind=noop&type=job", last_id=0)
        two = await reader(web, "?job=3", last_id=0)
        three = await reader(web, "?target=t&type=job.enqueued&type=node", last_id=0)
        await web.engine.events.record([NewEvent("node.started", {"node": "n"})])
        await web.engine.jobs.enqueue([NewJob("report"), NewJob("noop", target="t")])
        assert [told.data["job_id"] for told in await far(lambda: one.take(3))] == [2, 3, 5]
        assert [told.data["job_id"] for told in await far(lambda: two.take(1))] == [3]
        assert [told.data["job_id"] for told in await far(lambda: three.take(2))] == [3, 5]
        for each in (one, two, three):
            each.close()


@pytest.mark.parametrize(
    "query", ["?job=x", "?job=0", "?type=job.faild", "?type=", "?kind=", "?since=1", "?job=1&job=2"]
)
async def test_what_cannot_be_meant_is_refused(query: str) -> None:
    async with followed() as web:
        assert await refusal(web, query) == 422
        assert await refusal(web, "?tenant=nobody") == 404


async def test_readers_have_places_of_their_own_and_give_them_back() -> None:
    async with followed() as web:
        for _ in range(3):
            readers = [await reader(web) for _ in range(EVENT_READERS_MAX)]
            assert await refusal(web) == 503
            assert (await web.get("/status")).status == 200
            for each in readers:
                each.close()
            await _all_left(web)


async def _all_left(web: Web) -> None:
    await _none_left(web)
    await trio.sleep(0.2)


async def _none_left(web: Web) -> None:
    with trio.fail_after(5):
        while web.feed.readers:  # noqa: ASYNC110 - each leaves in its own time
            await trio.sleep(0.01)


async def test_a_reader_that_leaves_leaves_nothing() -> None:
    with no_leaks():
        async with followed() as web:
            for _ in range(20):
                one = await reader(web)
                one.close()
                await _none_left(web)


async def test_the_end_of_the_feed_is_the_proper_end_of_the_stream() -> None:
    async with followed() as web:
        one = await reader(web)
        await far(lambda: one.take(1))
        await web.engine.events.record([NewEvent("node.stopped", {"node": "n"})])
        await web.feed.close()
        assert [told.name for told in await far(lambda: list(one.events()))] == ["node.stopped"]
        assert one.is_whole
        one.close()
        assert await refusal(web) == 503


async def test_an_old_client_gets_the_plain_text() -> None:
    async with followed() as web:
        await web.engine.jobs.enqueue([NewJob("report")])
        stream = await trio.open_tcp_stream("127.0.0.1", int(web.address.rpartition(":")[2]))
        async with stream:
            await stream.send_all(
                b"GET /events?last_event_id=0 HTTP/1.0\r\nHost: localhost\r\n\r\n"
            )
            found = await _received(stream, b"job.enqueued")
        head, _, text = found.partition(b"\r\n\r\n")
        assert b"chunked" not in head.lower()
        assert text.startswith(b"retry: 1000\n\nevent: job.enqueued\nid: 1\n")


async def _received(stream: trio.SocketStream, mark: bytes) -> bytes:
    found = b""
    with trio.fail_after(5):
        while mark not in found:
            found += await stream.receive_some()
    return found


async def test_a_long_stream_outlasts_the_time_that_a_request_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("musterd.web.server.guard.REQUEST_SECONDS", 0.2)
    monkeypatch.setattr("musterd.web.server.requests.ANSWER_SECONDS", 0.2)
    async with followed() as web:
        one = await reader(web)
        await trio.sleep(0.5)
        await web.engine.jobs.enqueue([NewJob("report")])
        assert [told.name for told in await far(lambda: one.take(2))] == [
            "snapshot",
            "job.enqueued",
        ]
        one.close()
