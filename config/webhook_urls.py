"""URLs of webhooks: which are valid, and which hosts are never called."""

import ipaddress
import re
import socket
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from attrs import frozen

from musterd.config.faults import Unfit
from musterd.config.job_options import URL_LENGTH_MAX

_PORT_MAX = 65_535
_PORT_DIGITS_MAX = 5  # with zeros before it too: a database's own check takes no more
_SCHEME = re.compile(r"https?://")
_AUTHORITY = re.compile(r"https?://([^/?#]*)")
_DOTS = re.compile(r"(?:^|/|%2f)(?:\.|%2e){1,2}(?:/|%2f|$)", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]*))?")


@frozen
class UrlPolicy:
    """What is allowed beyond https:// to public addresses."""

    allow_http: bool = False
    allow_private: bool = False


STRICT = UrlPolicy()
ANY_URL = UrlPolicy(allow_http=True, allow_private=True)


def check_webhook_url(url: object) -> None:
    """Raises Unfit for an invalid webhook URL. The URL may hold a secret: it is not shown."""
    if not isinstance(url, str) or not 1 <= len(url) <= URL_LENGTH_MAX:
        raise Unfit(f"a URL of 1 to {URL_LENGTH_MAX} characters")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise Unfit("a URL of printable ASCII", "write other characters as %XX")
    if not _SCHEME.match(url):
        raise Unfit("a URL that starts with https://")
    host, port = _host_and_port(url)
    if not host:
        raise Unfit("a URL with a host")
    if port is not None and not (
        1 <= len(port) <= _PORT_DIGITS_MAX and 1 <= int(port) <= _PORT_MAX
    ):
        raise Unfit(f"a port of 1 to {_PORT_MAX}")
    if "#" in url:
        raise Unfit("a URL without #", "what follows # is never sent")


def check_allowed(url: str, policy: UrlPolicy) -> None:
    """Raises Unfit for a webhook URL that this configuration does not allow."""
    if url.startswith("http://") and not policy.allow_http:
        raise Unfit(
            "a URL that starts with https://", "[webhooks] allow_http = true allows http://"
        )
    address = address_in(_host_and_port(url)[0])
    if address is None:
        return
    reach = reach_of(address)
    if reach == "never":
        raise Unfit("the address of a public host", f"nothing is ever sent to {address}")
    if reach == "private" and not policy.allow_private:
        hint = f"[webhooks] allow_private = true allows {address}"
        raise Unfit("the address of a public host", hint)


def is_at(url: str, receiver: str) -> bool:
    """Whether a webhook's URL is that of a receiver, or below it."""
    (origin, path), (own, prefix) = _place_of(url), _place_of(receiver)
    if _DOTS.search(path):  # it may lead anywhere
        return False
    return origin == own and (path == prefix or path.startswith(prefix.rstrip("/") + "/"))


def _place_of(url: str) -> tuple[tuple[str, str, int], str]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return (parts.scheme, (parts.hostname or "").removesuffix("."), port), parts.path or "/"


def _host_and_port(url: str) -> tuple[str, str | None]:
    """The host is "" if there is none, or none that can be called."""
    found = _AUTHORITY.match(url)
    authority = found[1] if found else ""
    if "@" in authority:
        raise Unfit("a URL without user and password", "what is sent is signed")
    parts = _HOST_AND_PORT.fullmatch(authority)
    return (parts[1], parts[2]) if parts else ("", None)


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Reach: TypeAlias = Literal["public", "private", "never"]


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


# What `is_global` of the standard library thinks of all these differs between its versions.
_PRIVATE = _networks(
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "::1/128", "fc00::/7")
)
_NEVER = _networks(
    *("0.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24"),
    *("192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
    "168.63.129.16/32",  # a cloud's own channel to its machines, on a public address
    # Of IPv6 only 2000::/3 is given out; beyond it lie 64:ff9b::/96, unwrapped below, and what is
    # private.
    *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    # Machines ask there who they are, and get their keys.
    *("fd00:ec2::254/128", "fd20:ce::254/128"),
)
_GIVEN_OUT = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# An interface that wraps an IPv4 address, whatever network it is in.
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_V4_BITS = 0xFFFF_FFFF
_NUMERIC = re.compile(r"[0-9a-fA-FxX.]+")
_LOCALHOST = ipaddress.IPv4Address("127.0.0.1")


def reach_of(address: Address) -> Reach:
    """Whether an address may be called: `private` (loopback, private networks) only if the policy
    allows it; `never` (link-local, multicast, reserved, tunnels, …) not at all.
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & _V4_BITS)
        if inner is not None:
            return reach_of(inner)
    if any(address in network for network in _NEVER):
        return "never"
    if any(address in network for network in _PRIVATE):
        return "private"
    if isinstance(address, ipaddress.IPv6Address) and not _may_be_called(address):
        return "never"
    return "public"


def address_in(host: str) -> Address | None:
    """The address that a host is, however it is written; None = a name."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        pass
    if host.lower() == "localhost" or host.lower().endswith(".localhost"):
        return _LOCALHOST
    if _NUMERIC.fullmatch(host):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f000001, 2130706433
        except OSError:
            return None
    return None


def _may_be_called(address: ipaddress.IPv6Address) -> bool:
    if address not in _GIVEN_OUT:
        return False
    if (int(address) >> 32) & _V4_BITS in _ISATAP:
        return reach_of(ipaddress.IPv4Address(int(address) & _V4_BITS)) == "public"
    return True
