"""HTTP kinds: what is sent, what becomes of the answer, what is worth another try."""

import json
from pathlib import Path

import pytest
import trio

from musterd.workers.outcome import Outcome
from musterd.workers.runners.http_client import HttpClient
from musterd.workers.runners.http_messages import retry_after_seconds
from tests.support.assignments import TOKEN
from tests.support.http_calls import NO_CONTENT, answer, answered, call
from tests.support.scripted_server import scripted

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n"


class TestRequest:
    async def test_the_payload_is_the_body_and_the_fence_is_in_headers(
        self, client: HttpClient
    ) -> None:
        async with scripted([NO_CONTENT]) as server:
            outcome = await call(client, f"{server.url}/notify?to=a%20b", {"ü": 1}, attempt=3)
        (seen,) = server.seen
        assert outcome == Outcome("success")
        assert (seen.method, seen.target) == ("POST", "/notify?to=a%20b")
        assert json.loads(seen.body) == {"ü": 1}
        assert seen.headers == {
            "host": f"127.0.0.1:{server.port}",
            "content-length": str(len(seen.body)),
            "content-type": "application/json",
            "accept": "application/json, text/plain;q=0.9, */*;q=0.1",
            "accept-encoding": "identity",
            "user-agent": "musterd",
            "musterd-job-id": "7",
            "musterd-attempt": "3",
            "musterd-claim-token": str(TOKEN),
        }

    async def test_the_kinds_headers_win_but_over_the_fence(self, client: HttpClient) -> None:
        headers = {"Content-Type": "application/x", "Host": "shop", "Musterd-Job-Id": "1"}
        async with scripted([NO_CONTENT]) as server:
            await call(client, server.url, headers=headers, method="PUT")
        (seen,) = server.seen
        assert seen.method == "PUT"
        assert seen.headers["content-type"] == "application/x"
        assert seen.headers["host"] == "shop"
        assert seen.headers["musterd-job-id"] == "7"

    async def test_a_secret_is_read_anew_for_each_job(
        self, client: HttpClient, tmp_path: Path
    ) -> None:
        secret = tmp_path / "token"
        async with scripted([NO_CONTENT, NO_CONTENT]) as server:
            for word in ("first", "second"):
                secret.write_text(f"Bearer {word}\n")
                await call(client, server.url, header_files={"Authorization": secret})
        assert [seen.headers["authorization"] for seen in server.seen] == [
            "Bearer first",
            "Bearer second",
        ]

    async def test_a_secret_that_is_missing_is_named_and_waited_for(
        self, client: HttpClient, tmp_path: Path
    ) -> None:
        files = {"Authorization": tmp_path / "gone"}
        outcome = await call(client, "http://127.0.0.1:1", header_files=files)
        assert (outcome.ended, outcome.error_type) == ("retry", "header_file")
        assert str(tmp_path / "gone") in (outcome.message or "")

    async def test_what_cannot_be_a_header_fails_without_being_told(
        self, client: HttpClient, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text("canäry")
        async with scripted([]) as server:
            files = {"Authorization": tmp_path / "token"}
            outcome = await call(client, server.url, header_files=files)
        assert (outcome.ended, outcome.error_type) == ("failure", "http_request")
        assert "can" + "ä" not in repr(outcome)

    async def test_proxies_of_the_environment_are_not_used(
        self, client: HttpClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        assert (await answered(client, NO_CONTENT)).ended == "success"


class TestSuccess:
    @pytest.mark.parametrize(
        ("said", "result"),
        [
            (answer("200 OK", b'{"a": 1}'), '{"a": 1}'),
            (answer("201 Created", b"done\n"), '"done"'),
            (answer("200 OK", b""), None),
            (NO_CONTENT, None),
            (CHUNKED, "[1]"),
            (b"HTTP/1.1 103 Early Hints\r\n\r\n" + answer("200 OK", b"1"), "1"),
        ],
        ids=["json", "text", "empty", "204", "chunked", "after a 103"],
    )
    async def test_the_body_is_the_result(
        self, client: HttpClient, said: bytes, result: str | None
    ) -> None:
        outcome = await answered(client, said)
        assert (outcome.ended, outcome.result) == ("success", result)

    async def test_a_body_may_end_with_the_connection(self, client: HttpClient) -> None:
        async def say(stream: trio.abc.Stream) -> None:
            await stream.send_all(b"HTTP/1.0 200 OK\r\n\r\nall of it")
            await stream.aclose()

        assert (await answered(client, say)).result == '"all of it"'

    async def test_a_slow_body_is_waited_for(self, client: HttpClient) -> None:
        async def say(stream: trio.abc.Stream) -> None:
            for byte in answer("200 OK", b"true"):
                await stream.send_all(bytes([byte]))
                await trio.sleep(0.001)

        assert (await answered(client, say)).result == "true"

    @pytest.mark.parametrize("status", ["200 OK", "500 No"])
    async def test_an_endless_body_is_left_at_the_limit(
        self, client: HttpClient, status: str
    ) -> None:
        async def say(stream: trio.abc.Stream) -> None:
            await stream.send_all(f"HTTP/1.1 {status}\r\n\r\n".encode())
            while True:
                await stream.send_all(b"x" * 65_536)

        outcome = await answered(client, say)
        assert outcome.error_type == ("result_invalid" if status == "200 OK" else "http_status")

    async def test_a_body_that_no_store_can_keep_is_an_invalid_result(
        self, client: HttpClient
    ) -> None:
        outcome = await answered(client, answer("200 OK", b"\xff\xfe"))
        assert outcome.error_type == "result_invalid"
        assert outcome.message == "the body is not UTF-8: byte 0 is 0xff"


class TestRefusals:
    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
    async def test_a_server_in_trouble_is_tried_again(
        self, client: HttpClient, status: int
    ) -> None:
        said: list[str] = []
        busy = answer(f"{status} So", b"busy\ntoday", "retry-after: 7")
        outcome = await answered(client, busy, said=said)
        assert (outcome.ended, outcome.error_type) == ("retry", "http_status")
        assert outcome.delay_seconds == 7.0
        assert said == ["answer error busy", "answer error today"]

    @pytest.mark.parametrize("status", [400, 401, 404, 409, 410, 422])
    async def test_a_refusal_is_final(self, client: HttpClient, status: int) -> None:
        outcome = await answered(client, answer(f"{status} So", b"no"))
        assert (outcome.ended, outcome.error_type) == ("failure", "http_status")
        assert (outcome.message or "").startswith(f"answered with status {status} ")
        assert not outcome.retryable

    async def test_a_retryable_kind_tries_a_refusal_again(self, client: HttpClient) -> None:
        assert (await answered(client, answer("404 No"), retryable=True)).retryable

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    async def test_a_redirect_is_not_followed(self, client: HttpClient, status: int) -> None:
        async with scripted([answer(f"{status} So", b"", "location: /other")]) as server:
            outcome = await call(client, server.url)
        assert outcome.ended == "failure"
        assert "redirects are not followed" in (outcome.message or "")
        assert len(server.seen) == 1

    async def test_a_secret_that_the_server_repeats_is_masked(
        self, client: HttpClient, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text("canary-1")
        said: list[str] = []
        await answered(
            client,
            answer("403 No", b"bad: canary-1, canary-2"),
            said=said,
            header_files={"X-Shop": tmp_path / "token"},
            headers={"X-Api-Key": "canary-2"},
        )
        assert said == ["answer error bad: ***, ***"]

    @pytest.mark.parametrize("status", ["200 OK", "403 No"])
    async def test_a_token_that_the_server_repeats_without_its_scheme_is_masked(
        self, client: HttpClient, tmp_path: Path, status: str
    ) -> None:
        (tmp_path / "token").write_text("Bearer canary-0123456789")
        said: list[str] = []
        outcome = await answered(
            client,
            answer(status, b'{"got": "canary-0123456789"}'),
            said=said,
            header_files={"Authorization": tmp_path / "token"},
        )
        assert (outcome.result or said[0]).endswith('{"got": "***"}')

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({}, None),
            ({"retry-after": "0"}, 0.0),
            ({"retry-after": "120"}, 120.0),
            ({"retry-after": "999999999999999"}, 3600.0),
            ({"retry-after": "soon"}, None),
            ({"retry-after": "-5"}, None),
            ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
            ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "junk"}, None),
            (
                {
                    "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                    "date": "Wed, 21 Oct 2026 07:28:00 GMT",
                },
                30.0,
            ),
            (
                {
                    "retry-after": "Wed, 21 Oct 2026 07:00:00 GMT",
                    "date": "Wed, 21 Oct 2026 07:28:00 GMT",
                },
                0.0,
            ),
        ],
    )
    def test_retry_after_is_seconds_or_a_date_by_the_servers_clock(
        self, headers: dict[str, str], seconds: float | None
    ) -> None:
        assert retry_after_seconds(headers) == seconds


class TestSpending:
    @pytest.mark.parametrize("status", ["200 OK", "503 Busy"])
    async def test_a_server_says_what_it_has_spent(self, client: HttpClient, status: str) -> None:
        reply = answer(status, b"1", "musterd-spent: tokens=120, calls=1")
        async with scripted([reply]) as server:
            spent: list[str] = []
            outcome = await call(client, server.url, budgets={"tokens": 120}, spent=spent)
        assert outcome.error_type != "budget_exceeded"
        assert [json.loads(one) for one in spent] == [{"tokens": 120, "calls": 1}]

    async def test_too_much_is_a_failure(self, client: HttpClient) -> None:
        reply = answer("200 OK", b"1", "musterd-spent: tokens=121")
        async with scripted([reply]) as server:
            outcome = await call(client, server.url, budgets={"tokens": 120})
        assert (outcome.ended, outcome.error_type) == ("failure", "budget_exceeded")

    async def test_what_is_no_amount_is_ignored(self, client: HttpClient) -> None:
        reply = answer("200 OK", b"1", "musterd-spent: tokens=many")
        async with scripted([reply]) as server:
            spent: list[str] = []
            await call(client, server.url, spent=spent)
            assert not spent
