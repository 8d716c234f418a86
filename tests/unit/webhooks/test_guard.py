"""Requests go to addresses that were checked, each time anew, and nowhere else."""

import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from musterd.config.webhook_urls import ANY_URL, UrlPolicy
from musterd.manager.webhooks.courier import (
    ANSWER_BYTES_MAX,
    Denied,
    Sender,
    SystemResolver,
    Unresolved,
    checked_addresses,
    is_of_this_machine,
)
from musterd.workers.runners.http_client import HttpClient
from musterd.workers.runners.http_messages import HttpTrouble
from tests.support.scripted_server import scripted

TLS = Path(__file__).parents[2] / "support" / "tls"
OK = b"HTTP/1.1 204 No Content\r\n\r\n"
PUBLIC = "93.184.216.34"


class Names:
    """A name server whose answers change from one question to the next."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_public_addresses_are_given_each_once() -> None:
    names = Names([PUBLIC, PUBLIC, "2606:4700::1"])
    assert await checked_addresses("a.example", UrlPolicy(), names) == [PUBLIC, "2606:4700::1"]


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"]
)
async def test_one_private_address_denies_them_all(address: str) -> None:
    with pytest.raises(Denied, match="allow_private = true") as denied:
        await checked_addresses("a.example", UrlPolicy(), Names([PUBLIC, address]))
    assert not denied.value.final
    assert await checked_addresses("a.example", ANY_URL, Names([address])) == [address]


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "fe80::1%1", "2002:a00:1::"])
async def test_some_are_denied_whatever_is_allowed(address: str) -> None:
    with pytest.raises(Denied, match="to which nothing is sent"):
        await checked_addresses("a.example", ANY_URL, Names([address]))


async def test_an_address_in_the_url_is_asked_of_nobody_and_denied_for_good() -> None:
    names = Names([PUBLIC])
    for host in ("127.0.0.1", "2130706433", "localhost", "::1"):
        with pytest.raises(Denied) as denied:
            await checked_addresses(host, UrlPolicy(), names)
        assert denied.value.final
    assert names.asked == []


async def test_the_system_knows_this_machine_and_not_every_name() -> None:
    resolve = SystemResolver()
    assert set(await resolve("localhost")) <= {"127.0.0.1", "::1"}
    with pytest.raises(Unresolved, match="has no address"):
        await resolve("no-such-host.invalid")


async def test_the_request_goes_to_the_checked_address_under_the_name_that_was_meant() -> None:
    async with scripted([OK]) as server:
        sender = Sender(HttpClient, Names(["127.0.0.1"]))
        url = f"http://hooks.example:{server.port}/in?x=1"
        answer = await sender.post(url, {"webhook-id": "m"}, b"{}", ANY_URL)
        (seen,) = server.seen
    assert (answer.status, seen.method, seen.target, seen.body) == (204, "POST", "/in?x=1", b"{}")
    assert seen.headers["host"] == f"hooks.example:{server.port}"
    assert seen.headers["webhook-id"] == "m"


async def test_a_name_that_turns_is_asked_for_at_each_request() -> None:
    async with scripted([OK]) as server:
        names = Names(["127.0.0.1"], ["169.254.169.254"])
        sender, url = Sender(HttpClient, names), f"http://hooks.example:{server.port}/"
        await sender.post(url, {}, b"", ANY_URL)
        with pytest.raises(Denied):
            await sender.post(url, {}, b"", ANY_URL)
        assert len(server.seen) == 1


async def test_where_one_address_is_dead_the_next_is_tried() -> None:
    async with scripted([OK]) as server:
        sender = Sender(HttpClient, Names(["127.0.0.2", "127.0.0.1"]))
        answer = await sender.post(f"http://a.example:{server.port}/", {}, b"", ANY_URL)
    assert answer.status == 204


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::ffff:127.0.0.1", "::1"])
async def test_the_daemon_itself_is_never_called(address: str) -> None:
    async with scripted([OK]) as server:
        sender = Sender(HttpClient, Names([address]), own_port=lambda: server.port)
        with pytest.raises(Denied, match="this daemon itself") as denied:
            await sender.post(f"http://a.example:{server.port}/drain", {}, b"", ANY_URL)
        assert denied.value.final
        assert server.seen == []


def test_only_addresses_of_this_machine_are_its_own() -> None:
    assert not is_of_this_machine(PUBLIC)
    assert not is_of_this_machine("2606:4700::1")


async def test_the_certificate_must_be_that_of_the_name() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    trusting = ssl.create_default_context(cafile=str(TLS / "certificate.pem"))
    async with scripted([OK], context) as server:
        good = Sender(lambda: HttpClient(lambda: trusting), Names(["127.0.0.1"]))
        answer = await good.post(f"https://localhost:{server.port}/", {}, b"", ANY_URL)
        assert answer.status == 204
        with pytest.raises(HttpTrouble, match="certificate is not to be trusted"):
            await good.post(f"https://other.test:{server.port}/", {}, b"", ANY_URL)
        with pytest.raises(HttpTrouble, match="certificate is not to be trusted"):
            await Sender(HttpClient, Names(["127.0.0.1"])).post(
                f"https://localhost:{server.port}/", {}, b"", ANY_URL
            )


async def test_of_an_endless_answer_only_the_beginning_is_read() -> None:
    async def talk(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n")
        while True:
            await stream.send_all(b"x" * 65_536)

    async with scripted([talk]) as server:
        with trio.fail_after(5):
            answer = await Sender(HttpClient).post(f"{server.url}/", {}, b"", ANY_URL)
    assert answer.status == 200
    assert len(answer.body) <= ANSWER_BYTES_MAX
