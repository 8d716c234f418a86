"""Who is let in: by token, host name, size, number and pace."""

import contextlib
import socket
import struct

import pytest
import trio

from musterd.web.deps import ENVELOPE_BYTES
from musterd.web.server import places
from musterd.web.server import serving as server
from tests.support.web_scene import PAYLOAD_BYTES_MAX, Web, serving

TOKEN = "s3cret"
BARE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
JOB = b'{"kind": "report"}'
SLOW_BODY = (
    b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)
RESET_AT_ONCE = struct.pack("ii", 1, 0)  # a close drops the connection, and what is unsent
BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def test_with_a_token_only_probes_may_ask_without_it() -> None:
    async with serving(token=TOKEN) as web:
        for path in ("/livez", "/readyz"):
            assert (await web.get(path)).status == 200
        for path in ("/", "/metrics", "/status", "/workers", "/scaling", "/nowhere"):
            answer = await web.get(path)
            assert (answer.status, answer.headers["www-authenticate"]) == (
                401,
                'Bearer realm="musterd"',
            )
            assert answer.headers["content-type"] == "application/problem+json"
        assert (await web.get("/status", BEARER)).status == 200


@pytest.mark.parametrize("path", [b"/livez", b"/status"])
async def test_without_a_token_there_is_one_answer_a_connection(path: bytes) -> None:
    twice = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path * 2
    async with serving(token=TOKEN) as web:
        with trio.fail_after(4):
            assert (await said(web, twice)).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer ", f"Basic {TOKEN}", TOKEN, "Bearer s3cret\xe9"]
)
async def test_no_other_authorization_passes(header: str) -> None:
    async with serving(token=TOKEN) as web:
        assert (await web.get("/status", {"Authorization": header})).status == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1234", 200),
        ("127.0.0.1:9477", 200),
        ("[::1]:9477", 200),
        ("[::1]", 200),
        ("evil.example", 421),
        ("evil.example:9477", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
async def test_on_loopback_only_this_machines_names_are_known(host: str, status: int) -> None:
    async with serving() as web:
        assert (await web.get("/status", {"Host": host})).status == status


async def test_a_webhook_of_any_daemon_does_nothing_here() -> None:
    async with serving() as web:
        answer = await web.get("/drain", {"webhook-id": "msg_1"}, method="POST")
        assert (answer.status, web.node.drained) == (403, 0)


async def test_every_answer_tells_browsers_to_be_careful() -> None:
    async with serving(token=TOKEN) as web:
        for path in ("/livez", "/status", "/nowhere"):
            headers = (await web.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert "server" not in headers


async def said(web: Web, request: bytes) -> bytes:
    """Sends bytes as they are; gives all that comes until the other side closes."""
    host, port = web.address.removeprefix("http://").split(":")
    stream = await trio.open_tcp_stream(host, int(port))
    async with stream:
        await stream.send_all(request)
        return b"".join([bytes(part) async for part in stream])


@pytest.mark.parametrize(("more", "status"), [(0, b"405"), (1, b"413")])
async def test_a_body_may_be_as_large_as_the_limit_says(more: int, status: bytes) -> None:
    size = PAYLOAD_BYTES_MAX + ENVELOPE_BYTES + more
    head = f"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n"
    async with serving() as web:
        with trio.fail_after(10):
            answer = await said(web, f"{head}Connection: close\r\n\r\n".encode() + b"x" * size)
    assert answer.startswith(b"HTTP/1.1 " + status)


async def test_a_large_body_is_refused_before_it_is_sent() -> None:
    async with serving() as web:
        head = b"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        with trio.fail_after(10):
            answer = await said(web, head)
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_and_harms_nobody(request_bytes: bytes) -> None:
    async with serving() as web:
        with trio.fail_after(10):
            try:
                answer = await said(web, request_bytes)
            except trio.BrokenResourceError:
                answer = b"HTTP/1.1 400 "  # cut off while it was still sending
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
        assert (await web.get("/livez")).status == 200


@pytest.mark.parametrize("path", ["/status//", "//status", "/jobs//", "/livez/x"])
async def test_a_path_that_is_none_is_404_and_no_redirect(path: str) -> None:
    async with serving() as web:
        assert (await web.get(path)).status == 404


async def test_headers_that_never_end_are_waited_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.05)
    async with serving() as web:
        with trio.fail_after(5):
            assert await said(web, b"GET /livez HTTP/1.1\r\nHost: loc") == b""


async def until_answered(web: Web) -> None:
    while await said(web, BARE) == b"":  # noqa: ASYNC110 - only asking again tells
        await trio.sleep(0.01)


async def test_who_has_left_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "CONNECTIONS_MAX", 2)
    with trio.fail_after(4):  # less than the idle time, which a place would stay taken for
        async with serving() as web:
            for _ in range(6):
                await until_answered(web)


async def test_who_resets_before_being_received_harms_nobody() -> None:
    async with serving() as web:
        host, port = web.address.removeprefix("http://").split(":")
        for _ in range(3):  # the server has no turn before the last of them is gone
            with socket.create_connection((host, int(port)), timeout=5) as stream:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
        assert (await web.get("/livez")).status == 200


async def test_who_was_sent_away_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "CONNECTIONS_MAX", 2)
    async with serving() as web:
        with trio.fail_after(4):
            for _ in range(6):
                await until_sent_away(web)
            await until_answered(web)


async def until_sent_away(web: Web) -> None:
    """Asks until there was a place."""
    while await said(web, b"NO REQUEST\r\n\r\n") == b"":  # noqa: ASYNC110 - as above
        await trio.sleep(0.01)


async def test_the_longest_silent_connection_makes_room_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "CONNECTIONS_MAX", 2)
    async with serving() as web:
        host, port = web.address.removeprefix("http://").split(":")
        async with (
            await trio.open_tcp_stream(host, int(port)) as first,
            await trio.open_tcp_stream(host, int(port)) as second,
        ):
            with trio.fail_after(4):  # less than either would be waited for
                assert (await said(web, BARE)).startswith(b"HTTP/1.1 200 ")
                assert await first.receive_some() == b""
            await second.send_all(BARE)
            assert (await second.receive_some()).startswith(b"HTTP/1.1 200 ")


async def test_who_is_being_answered_makes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "CONNECTIONS_MAX", 2)
    with trio.fail_after(5):
        async with serving() as web:
            host, port = web.address.removeprefix("http://").split(":")
            slow = [await trio.open_tcp_stream(host, int(port)) for _ in range(2)]
            for stream in slow:
                await stream.send_all(SLOW_BODY % len(JOB))
            await until_sent_away_unheard(web)
            for stream in slow:
                await stream.send_all(JOB)
                assert (await stream.receive_some()).startswith(b"HTTP/1.1 201 ")
                await stream.aclose()


async def until_sent_away_unheard(web: Web) -> None:
    while await said(web, BARE) != b"":  # noqa: ASYNC110 - only asking again tells
        await trio.sleep(0.01)


async def test_a_reader_that_never_reads_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "SEND_SECONDS", 0.2)
    with trio.fail_after(10):
        async with serving() as web:
            await ask_without_reading(web)


async def ask_without_reading(web: Web) -> None:
    """Fills both sides, until it is cut off or a second is over."""
    host, port = web.address.removeprefix("http://").split(":")
    asked = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        with trio.move_on_after(1), contextlib.suppress(trio.BrokenResourceError):
            while True:
                await stream.send_all(asked)
