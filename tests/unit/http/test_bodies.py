"""Bodies that are large, slow, without an end, or of no interest to anybody."""

from __future__ import annotations

import contextlib

import pytest
import trio

from musterd.store.queue import Counts
from musterd.web.server import guard, places, requests
from tests.support.web_scene import COUNTS, PAYLOAD_BYTES_MAX, Web, serving

CHUNKED = b"Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
CHUNK = b"10000\r\n" + b"x" * 65536 + b"\r\n"
JOB = b'{"kind": "report"}'


async def opened(web: Web) -> trio.SocketStream:
    host, port = web.address.removeprefix("http://").split(":")
    return await trio.open_tcp_stream(host, int(port))


async def answer_to(stream: trio.SocketStream, *parts: bytes) -> bytes:
    """Sends all, then gives what has come when the other side closes, or breaks off."""
    found = b""
    with contextlib.suppress(trio.BrokenResourceError):
        for part in parts:
            await stream.send_all(part)
    with contextlib.suppress(trio.BrokenResourceError):
        async for come in stream:
            found += bytes(come)
    return found


async def test_a_body_without_an_announced_length_is_read_to_its_end() -> None:
    async with serving() as web, await opened(web) as stream:
        size = f"{len(JOB):x}\r\n".encode()
        head = b"POST /jobs HTTP/1.1\r\nConnection: close\r\n" + CHUNKED
        with trio.fail_after(10):
            answer = await answer_to(stream, head, size + JOB + b"\r\n", b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 201 ")


async def test_a_body_that_grows_too_large_is_413_and_read_no_further() -> None:
    async with serving() as web, await opened(web) as stream:
        head = b"POST /jobs HTTP/1.1\r\n" + CHUNKED
        chunks = [CHUNK] * (PAYLOAD_BYTES_MAX // 65536 + 2)
        with trio.fail_after(10):
            answer = await answer_to(stream, head, *chunks)
        assert (await web.get("/livez")).status == 200
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer


async def slow_counts() -> Counts:
    await trio.sleep(0.2)
    return COUNTS


@pytest.mark.parametrize("route", [b"POST /queue/pause", b"GET /status", b"PUT /jobs", b"POST /x"])
async def test_a_body_that_nobody_reads_keeps_no_place(
    route: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server holds a few parts of it; its end must not wait behind them."""
    monkeypatch.setattr(places, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(guard, "PASSED_OVER_BYTES", 1_000_000)
    async with serving(counts=slow_counts) as web:
        async with await opened(web) as stream:
            with trio.fail_after(10):
                answer = await answer_to(stream, route + b" HTTP/1.1\r\n" + CHUNKED, *[CHUNK] * 60)
        assert answer.startswith(b"HTTP/1.1 ") or not answer  # cut off while it was still sending
        with trio.fail_after(2):
            while not await is_let_in(web):  # noqa: ASYNC110 - only asking again tells
                await trio.sleep(0.01)


async def is_let_in(web: Web) -> bool:
    async with await opened(web) as stream:
        asked = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        return (await answer_to(stream, asked)).startswith(b"HTTP/1.1 200 ")


async def test_a_small_body_that_nobody_reads_costs_no_connection() -> None:
    async with serving() as web, await opened(web) as stream:
        asked = b"POST /queue/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
        with trio.fail_after(10):
            for _ in range(2):
                await stream.send_all(asked)
                answer = await until_brace(stream)
                assert answer.startswith(b"HTTP/1.1 200 ")
                assert b"connection: close" not in answer


async def until_brace(stream: trio.SocketStream) -> bytes:
    answer = b""
    while b"}" not in answer:
        answer += await stream.receive_some()
    return answer


async def test_a_slow_body_is_waited_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(guard, "PASSED_OVER_SECONDS", 0.05)
    async with serving() as web, await opened(web) as stream:
        with trio.fail_after(5):
            answer = await answer_to(stream, b"POST /jobs HTTP/1.1\r\n" + CHUNKED, b"5\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_peer_that_leaves_before_the_end_of_its_body_makes_nothing() -> None:
    async with serving() as web:
        async with await opened(web) as stream:
            head = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            await stream.send_all(head + b"Content-Length: 100\r\n\r\n" + JOB)
        assert (await web.get("/livez")).status == 200
        assert (await web.engine.queue.counts()).enqueued_total == 0
