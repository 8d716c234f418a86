"""URLs of webhooks: whatever passes leads to a public address, by libc's reading and by that of an
oracle that knows the networks by heart of its own.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from urllib.parse import urlsplit

import attrs

from musterd.config.faults import Unfit
from musterd.config.webhook_urls import STRICT, UrlPolicy, check_allowed, check_webhook_url
from musterd.manager.webhooks.courier import Denied, checked_addresses
from musterd.workers.runners.http_messages import NotSendable, address_of
from tests.fuzz.mutating import changed, crossed
from tests.fuzz.target import Wrong

PLAIN = re.compile(r"https://[1-9][0-9]?(\.[1-9][0-9]?){3}(/[a-z0-9/?=]*)?")
PORT = re.compile(r"https?://[a-z0-9.]+:([0-9]{6,}|[0-9]*[^0-9/?][^/?]*)?([/?]|$)")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PRIVATE_V4 = ("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "0.0.0.0",
              "100.64.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.0.170",
              "127.8.8.8", "168.63.129.16")  # fmt: skip
PUBLIC = ("93.184.216.34", "8.8.8.8", "2606:4700::1111", "2a00:1450::5")
IN_V6 = (
    *("::ffff:{0}", "::{0}", "64:ff9b::{0}", "::ffff:0:{0}", "2400:cb00::5efe:{0}", "fe80::{0}"),
    *("64:ff9b:1::{0}", "2002:{1}::", "2002:{1}::1", "2001:0:{1}::1", "2001:db8::{0}"),
)
NAMES = ("example.com", "localhost", "a.localhost", "LOCALHOST", "localhost.", "x.internal", "a",
         "metadata.google.internal", "127.0.0.1.nip.io", "xn--a.example", "a..b", "-a.example",
         "a_b.example", "example.com.", "1.2.3.4.5", "0x7f.1", "1e1.1", "0.0.0.0.")  # fmt: skip
TAILS = ("", "/", "/x?y=z", "?x", "#f", "/a@b", "//x", "/%00", "/\\@127.0.0.1", ";x", "/x#@y")
PIECES = (
    *(b"@", b"@127.0.0.1", b"#", b"?", b"/", b"\\", b":", b"[", b"]", b"%", b"%00", b"%2e", b"%40"),
    *(b".", b"..", b"0x", b"0", b"::", b"::1", b"[::1]", b":80", b":0", b":99999", b":-1", b":+1"),
    *(b"\n", b"\r\n", b"\t", b" ", b"\0", "\u3002".encode(), "\uff0f".encode(), "\u2488".encode()),
    *(b"user:pw@", b"localhost", b"http://", b"https://", b"//", b"%25lo", b"%1", b"\xc2\xad"),
    *("\u24d4xample.com".encode(), b"1" * 40, b"a" * 64 + b".", b"a." * 130, b"_", b"-"),
)


def spelled(rng: Random, text: str) -> str:
    """An IPv4 address in one of the ways that libc reads."""
    number = int(ipaddress.IPv4Address(text))
    parts = [int(one) for one in text.split(".")]
    forms = (
        *(text, str(number), hex(number), oct(number).replace("0o", "0"), f"0x{number:08X}"),
        ".".join(rng.choice((str(one), hex(one), f"0{one:o}", f"{one:03}")) for one in parts),
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        f"{text}.",
        f"000000000{parts[0]:o}.{parts[1]}.{parts[2]}.{parts[3]}",
    )
    return rng.choice(forms)


def host(rng: Random) -> str:
    choice = rng.random()
    if choice < 0.3:
        return spelled(rng, rng.choice(PRIVATE_V4))
    if choice < 0.6:
        four = rng.choice((*PRIVATE_V4, "8.8.8.8"))
        number = int(ipaddress.IPv4Address(four))
        inner = rng.choice(IN_V6).format(four, f"{number >> 16:x}:{number & 0xFFFF:x}")
        return f"[{inner}{rng.choice(('', '', '%1', '%25eth0'))}]"
    if choice < 0.7:
        return f"[{ipaddress.IPv6Address(rng.getrandbits(128))}]"
    return rng.choice((*NAMES, *PUBLIC, "[::1]", "[::]", "[fe80::1]", "[fc00::1]"))


@attrs.frozen
class Urls:
    """An input is a URL, and what its name is found to lead to, then and at the next question."""

    name: str = "urls"
    share: int = 25

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        url = (plain_url if rng.random() < 0.6 else odd_url)(rng).encode()
        if rng.random() < 0.1 and corpus:
            url = crossed(rng, url, rng.choice(corpus).split(b"|")[0])
        if rng.random() < 0.3:
            url = changed(rng, url, PIECES, 3)
        return b"|".join((url, b",".join(answers(rng)), b",".join(answers(rng))))

    def check(self, whole: bytes) -> None:
        text, _, rest = whole.decode("utf-8", "replace").partition("|")
        first, _, second = rest.partition("|")
        found = (addresses_in(first), addresses_in(second))
        for policy in (STRICT, UrlPolicy(allow_http=True)):
            try:
                check_webhook_url(text)
                check_allowed(text, policy)
            except Unfit as unfit:
                if PLAIN.fullmatch(text) and is_public(ipaddress.ip_address(text.split("/")[2])):
                    raise Wrong(f"refused without reason: {unfit}") from None
                continue
            _called(text, policy, found)


URLS = Urls()


def plain_url(rng: Random) -> str:
    """Nothing is wrong with it but, perhaps, where it leads."""
    where = rng.choice(NAMES) if rng.random() < 0.5 else host(rng)
    return f"https://{where}{rng.choice(('', ':443', ':8443'))}{rng.choice(('', '/', '/x?y=z'))}"


def odd_url(rng: Random) -> str:
    port = rng.choice(
        ("", "", ":443", ":0", ":65536", ":", ":x", ":00443", ":000443", ":0000000443")
    )
    user = rng.choice(("", "", "", "u@", "u:p@", "127.0.0.1@", "example.com@"))
    scheme = rng.choice(("https://", "https://", "http://", "HTTPS://", "https:/", "//", ""))
    return f"{scheme}{user}{host(rng)}{port}{rng.choice(TAILS)}"


def answers(rng: Random) -> list[bytes]:
    """What a name server may say, some of it made to lead astray."""
    found = [rng.choice((*PRIVATE_V4, *PUBLIC, *PUBLIC)).encode() for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.3:
        found.append(str(ipaddress.IPv6Address(rng.getrandbits(128))).encode())
    if rng.random() < 0.3:
        found.append(host(rng).strip("[]").encode())
    return found


def addresses_in(text: str) -> list[str]:
    """Of the answers those that are addresses as a resolver gives them."""
    found: list[str] = []
    for one in text.split(","):
        try:
            found.append(str(ipaddress.ip_address(one)))
        except ValueError:
            continue
    return found


def _called(url: str, policy: UrlPolicy, found: tuple[list[str], list[str]]) -> None:
    """Where a request to this URL would go."""
    try:
        origin, _ = address_of(url)
    except NotSendable:  # told as what it is, and nothing is sent
        if PORT.search(url):
            raise Wrong("a port that cannot be called is taken") from None
        return
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise Wrong("a URL with user or password is taken")
    if origin.port != (parts.port or {"http": 80, "https": 443}[parts.scheme]):
        raise Wrong("another port than the URL says")
    if origin.scheme == "http" and not policy.allow_http:
        raise Wrong("http:// is taken")
    literal = by_libc(origin.host)
    if literal is not None and not is_public(literal):
        raise Wrong(f"{origin.host} is {literal}, and is taken")
    for one in addresses_called(origin.host, policy, found):
        if not is_public(ipaddress.ip_address(one)):
            raise Wrong(f"{origin.host} leads to {one}, and is called")


def addresses_called(
    name: str, policy: UrlPolicy, found: tuple[list[str], list[str]]
) -> Sequence[str]:
    asked = 0

    async def resolve(_: str) -> Sequence[str]:  # noqa: ASYNC124 - answers at once
        nonlocal asked
        asked += 1
        return found[min(asked, 2) - 1]

    try:
        called = _at_once(lambda: checked_addresses(name, policy, resolve))
    except Denied:
        return ()
    if asked > 1:
        raise Wrong("a name is asked for twice")
    if asked and not set(called) <= set(found[0]):
        raise Wrong("addresses that nobody gave")
    return called


def _at_once(call: Callable[[], Awaitable[Sequence[str]]]) -> Sequence[str]:
    """Runs what waits for nothing, without a loop of its own."""
    try:
        call().__await__().send(None)
    except StopIteration as done:
        given: Sequence[str] = done.value
        return given
    raise Wrong("it waits")


def by_libc(name: str) -> Address | None:
    """What the system takes a host for without asking anybody."""
    try:
        found = socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return ipaddress.ip_address(str(found[0][4][0]).partition("%")[0])


def is_public(address: Address) -> bool:
    """By the standard library, and whatever IPv4 address may be carried inside, at any place where
    a known form has one.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and str(address) != "168.63.129.16"
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    number = int(address)
    last = ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if number >> 32 == 0x0064_FF9B << 64:
        return is_public(last)
    if number >> 125 != 1 or address.sixtofour or address.teredo:
        return False
    if number >> 32 & 0xFFFF_FFFF in (0x5EFE, 0x0200_5EFE) and not is_public(last):
        return False
    return address.is_global and not address.is_multicast
