"""Where a webhook's host is, and whether a request may go there. Asked anew for each try, so that a
name which led somewhere harmless yesterday leads nowhere else today.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import attrs
import trio

from musterd.config.addresses import address_in, reach_of
from musterd.config.webhook_urls import UrlPolicy

RESOLVERS_MAX = 8  # threads; one that hangs in the system's resolver is left behind, and counts
ADDRESSES_MAX = 4  # of one host, tried one after the other

Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]


class Unresolved(Exception):
    """The name leads nowhere just now."""


class Denied(Exception):
    """The host is one to which nothing is ever sent. `final`: it will not be another one."""

    def __init__(self, said: str, *, final: bool) -> None:
        super().__init__(said)
        self.final = final


@attrs.define(eq=False)
class SystemResolver:
    """Asks the system for the addresses of a name, off the loop."""

    _limiter: trio.CapacityLimiter = attrs.field(
        factory=partial(trio.CapacityLimiter, RESOLVERS_MAX), init=False
    )

    async def __call__(self, host: str) -> Sequence[str]:
        """Raises `Unresolved`."""
        ask = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        try:
            found = await trio.to_thread.run_sync(
                ask, abandon_on_cancel=True, limiter=self._limiter
            )
        except (OSError, UnicodeError) as error:
            said = getattr(error, "strerror", None) or error
            raise Unresolved(f"{host} has no address: {said}") from None
        return [str(where[0]) for *_, where in found]


async def checked_addresses(host: str, policy: UrlPolicy, resolve: Resolve) -> Sequence[str]:
    """Gives the addresses of a host, all of which may be called. Raises `Denied`, `Unresolved`.

    One that may not be called denies them all: whoever mixes them is up to no good.
    """
    literal = address_in(host)
    found = [str(literal)] if literal is not None else await resolve(host)
    for text in found:
        reach = reach_of(ipaddress.ip_address(text))
        if reach == "public" or (reach == "private" and policy.allow_private):
            continue
        said = f"{host} leads to {text}, to which nothing is sent"
        if reach == "private":
            said += ": [webhooks] allow_private = true allows it"
        raise Denied(said, final=literal is not None)
    return list(dict.fromkeys(found))[:ADDRESSES_MAX]
