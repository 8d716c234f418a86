"""HTTP kinds: connections that fail, that are kept, and that must not be kept; TLS."""

import socket
import ssl
from contextlib import AbstractAsyncContextManager

import pytest
import trio

from musterd.workers.runners.http_client import HttpClient
from tests.support.http_calls import NO_CONTENT, TLS, answer, answered, call
from tests.support.scripted_server import ScriptedServer, Speech, scripted


class TestTrouble:
    async def test_nobody_listens(self, client: HttpClient) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound, not listening
            outcome = await call(client, f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert (outcome.ended, outcome.error_type) == ("retry", "connection")
        assert "Connection refused" in (outcome.message or "")

    @pytest.mark.parametrize(
        "said",
        [
            None,
            b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
            b"no http at all\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000,
        ],
        ids=["closed", "short body", "short chunk", "no HTTP", "endless header"],
    )
    async def test_half_an_answer_is_none(self, client: HttpClient, said: bytes | None) -> None:
        async def say(stream: trio.abc.Stream) -> None:
            await stream.send_all(said or b"")
            await stream.aclose()

        outcome = await answered(client, say)
        assert (outcome.ended, outcome.error_type) == ("retry", "connection")

    async def test_a_reset_is_told_as_one(self, client: HttpClient) -> None:
        async def reset(stream: trio.abc.Stream) -> None:
            assert isinstance(stream, trio.SocketStream)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            await trio.lowlevel.checkpoint()
            stream.socket.close()

        outcome = await answered(client, reset)
        assert outcome.error_type == "connection"
        assert outcome.message == "no whole answer: Connection reset by peer"

    async def test_a_refusal_in_the_middle_of_a_large_body_is_heard(
        self, client: HttpClient
    ) -> None:
        async def refuse(stream: trio.SocketStream) -> None:
            await stream.receive_some(100)
            await stream.send_all(answer("413 Content Too Large", b"", "connection: close"))
            await stream.send_eof()
            async for _ in stream:
                pass

        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            await nursery.start(trio.serve_listeners, refuse, [listener])
            port = listener.socket.getsockname()[1]
            outcome = await call(client, f"http://127.0.0.1:{port}", "x" * 3_000_000)
            nursery.cancel_scope.cancel()
        assert "413" in (outcome.message or "")

    async def test_a_hanging_server_is_left_at_the_time_limit(self, client: HttpClient) -> None:
        async def hang(_stream: trio.abc.Stream) -> None:
            await trio.sleep_forever()

        async with scripted([hang]) as server:
            with trio.move_on_after(0.1) as limit:
                await call(client, server.url)
        assert limit.cancelled_caught

    async def test_so_is_one_that_hangs_in_the_middle_of_its_answer(
        self, client: HttpClient
    ) -> None:
        gone = trio.Event()

        async def hang(stream: trio.abc.Stream) -> None:
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
            assert await stream.receive_some(1) == b""
            gone.set()

        async with scripted([hang]) as server:
            with trio.move_on_after(0.1) as limit:
                await call(client, server.url)
            assert limit.cancelled_caught
            with trio.fail_after(5):
                await gone.wait()


class TestConnections:
    async def test_one_is_used_again(self, client: HttpClient) -> None:
        async with scripted([NO_CONTENT] * 5) as server:
            for _ in range(5):
                await call(client, server.url)
        assert server.connections == 1

    async def test_calls_at_once_have_one_each(self, client: HttpClient) -> None:
        async def slowly(stream: trio.abc.Stream) -> None:
            await trio.sleep(0.05)
            await stream.send_all(NO_CONTENT)

        async with scripted([slowly] * 3) as server, trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call, client, server.url)
        assert server.connections == 3

    @pytest.mark.parametrize(
        "excess", [b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged", b"\n"]
    )
    async def test_what_a_server_sends_too_much_is_nobodys_answer(
        self, client: HttpClient, excess: bytes
    ) -> None:
        async with scripted([answer("200 OK", b"1") + excess, answer("200 OK", b"2")]) as server:
            first = await call(client, server.url)
            second = await call(client, server.url)
        assert (first.result, second.result) == ("1", "2")
        assert server.connections == 2

    async def test_excess_that_comes_later_is_not_used_either(self, client: HttpClient) -> None:
        sent = trio.Event()

        async def say(stream: trio.abc.Stream) -> None:
            await stream.send_all(answer("200 OK", b"1"))
            await trio.sleep(0.02)
            await stream.send_all(answer("200 OK", b"forged"))
            sent.set()

        async with scripted([say, answer("200 OK", b"2")]) as server:
            await call(client, server.url)
            await sent.wait()
            await trio.sleep(0.02)
            assert (await call(client, server.url)).result == "2"

    async def test_one_that_was_closed_while_idle_costs_no_attempt(
        self, client: HttpClient
    ) -> None:
        async with scripted([NO_CONTENT, None, answer("200 OK", b"2")]) as server:
            await call(client, server.url)
            outcome = await call(client, server.url)  # told None, then asked anew
        assert outcome.result == "2"
        assert [seen.connection for seen in server.seen] == [1, 1, 2]

    async def test_nor_do_several(self, client: HttpClient) -> None:
        async def slowly(stream: trio.abc.Stream) -> None:
            await trio.sleep(0.05)
            await stream.send_all(NO_CONTENT)

        async with scripted([slowly, slowly, None, None, answer("200 OK", b"2")]) as server:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, client, server.url)
                nursery.start_soon(call, client, server.url)
            assert (await call(client, server.url)).result == "2"
        assert server.connections == 3

    async def test_old_ones_are_closed(self) -> None:
        client = HttpClient(idle_seconds_max=0.0)
        async with scripted([NO_CONTENT] * 2) as server:
            await call(client, server.url)
            await trio.sleep(0.001)
            await call(client, server.url)
        assert server.connections == 2
        client.close()


class TestTls:
    async def test_a_trusted_server_is_called(self, client: HttpClient) -> None:
        async with tls_server([answer("200 OK", b"1")] * 2) as server:
            url = f"https://localhost:{server.port}"
            outcomes = [await call(client, url), await call(client, url)]
        assert [outcome.result for outcome in outcomes] == ["1", "1"]

    async def test_an_untrusted_one_is_not(self) -> None:
        client = HttpClient()
        async with tls_server([]) as server:
            outcome = await call(client, f"https://localhost:{server.port}")
        assert outcome.error_type == "connection"
        assert "its certificate is not to be trusted: self" in (outcome.message or "")
        client.close()

    async def test_nor_one_of_another_name(self, client: HttpClient) -> None:
        async with tls_server([]) as server:
            outcome = await call(client, f"https://127.0.0.2:{server.port}")
        assert outcome.error_type == "connection"


def tls_server(
    script: list[bytes | Speech | None],
) -> AbstractAsyncContextManager[ScriptedServer]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    return scripted(script, context)
