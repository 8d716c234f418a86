"""Where the HTTP API listens: at an address and port, at a socket, or nowhere."""

import ipaddress
import re

from attrs import define, frozen

from musterd.config.faults import Unfit

_HOST_AND_PORT = re.compile(
    r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})"
)
_PORT_MAX = 65535
TOKEN_LENGTH_MIN = 16  # where others than this machine can try
LONG_ENOUGH = f"a token of at least {TOKEN_LENGTH_MIN} characters to listen beyond loopback"
MAKES_ONE = "`openssl rand -base64 32` makes one"
_WANTED = '"host:port", "unix:/path" or ""'


@frozen
class TcpAddress:
    """Port 0 lets the system choose."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it. Any name but localhost counts as open."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


@frozen
class UnixAddress:
    """A socket file; its permissions decide who may use it."""

    path: str


@define(eq=False)
class OwnPort:
    """Where this daemon listens, once it does; None = at no port."""

    number: int | None = None


def listen_address(text: str) -> TcpAddress | UnixAddress | None:
    """Reads `http.listen`; None = nothing listens. Raises Unfit."""
    if not text:
        return None
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/"):
            raise Unfit("an absolute path after unix:")
        return UnixAddress(path)
    found = _HOST_AND_PORT.fullmatch(text)
    if found is None:
        hint = f"write 0.0.0.0{text} for every interface" if text.startswith(":") else ""
        raise Unfit(_WANTED, hint)
    if int(found["port"]) > _PORT_MAX:
        raise Unfit(f"a port of 0 to {_PORT_MAX}")
    if found["v6"]:
        _check_v6(found["v6"])
    return TcpAddress(found["v6"] or found["host"], int(found["port"]))


def _check_v6(host: str) -> None:
    try:
        ipaddress.IPv6Address(host)
    except ValueError as error:
        raise Unfit("an IPv6 address between the brackets", str(error)) from None


def is_open(listen: str) -> bool:
    """Whether others than this machine can reach it."""
    address = listen_address(listen)
    return isinstance(address, TcpAddress) and not address.is_loopback


def is_long_enough(token: str, listen: str) -> bool:
    """Whether this token may guard that address."""
    return len(token) >= TOKEN_LENGTH_MIN or not is_open(listen)
