"""One request to a receiver, to an address that has been checked. A receiver's host is looked up
anew for each try, so that a name which led somewhere harmless yesterday leads nowhere else today.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from musterd.config.webhook_urls import UrlPolicy, address_in, reach_of
from musterd.workers.runners.http_messages import Answer, HttpRequest, address_of

if TYPE_CHECKING:
    from musterd.workers.runners.http_client import HttpClient

ANSWER_BYTES_MAX = 65_536  # of its body, which is read and thrown away
RESOLVERS_MAX = 8  # threads; one that hangs in the system's resolver is left behind, and counts
ADDRESSES_MAX = 4  # of one host, tried one after the other

Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]


class Unresolved(Exception):
    """The name leads nowhere just now."""


class Denied(Exception):
    """Nothing is ever sent to this host. `final`: another try would find no other address."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


@attrs.define(eq=False)
class SystemResolver:
    """Asks the system for the addresses of a name, off the loop."""

    _limiter: trio.CapacityLimiter = attrs.field(
        factory=partial(trio.CapacityLimiter, RESOLVERS_MAX), init=False
    )

    async def __call__(self, host: str) -> Sequence[str]:
        """Raises `Unresolved`."""
        look_up = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        try:
            found = await trio.to_thread.run_sync(
                look_up, abandon_on_cancel=True, limiter=self._limiter
            )
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Unresolved(f"{host} has no address: {reason}") from None
        return [str(where[0]) for *_, where in found]


@attrs.define(eq=False)
class Sender:
    """Posts webhooks through the node's HTTP client, which `client` makes when it is needed."""

    client: Callable[[], HttpClient]
    resolve: Resolve = attrs.field(factory=SystemResolver)

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        """Raises `HttpTrouble`, `NotSendable`, `Denied` or `Unresolved`."""
        origin, target = address_of(url)
        addresses = await checked_addresses(origin.host, policy, self.resolve)
        request = HttpRequest("POST", origin, target, headers, body)
        return await self.client().send(request, ANSWER_BYTES_MAX, addresses)


async def checked_addresses(host: str, policy: UrlPolicy, resolve: Resolve) -> Sequence[str]:
    """Gives the addresses of a host, each of which may be called. Raises `Denied`, `Unresolved`.

    One forbidden address denies them all: no honest name mixes them.
    """
    literal = address_in(host)
    found = [str(literal)] if literal is not None else await resolve(host)
    for text in found:
        reach = reach_of(ipaddress.ip_address(text))
        if reach == "public" or (reach == "private" and policy.allow_private):
            continue
        message = f"{host} leads to {text}, to which nothing is sent"
        if reach == "private":
            message += ": [webhooks] allow_private = true allows it"
        raise Denied(message, final=literal is not None)
    return list(dict.fromkeys(found))[:ADDRESSES_MAX]
