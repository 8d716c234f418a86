"""One request to a receiver, to an address that has been checked."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence

import attrs
import trio

from musterd.config.webhook_urls import UrlPolicy
from musterd.manager.webhooks.guard import Resolve, SystemResolver, checked_addresses
from musterd.workers.runners.http_connection import (
    Answer,
    Connection,
    HttpRequest,
    HttpTrouble,
    Origin,
    address_of,
    connect,
)

ANSWER_BYTES_MAX = 65_536  # of its body, which is read and thrown away


@attrs.define(eq=False)
class Sender:
    """Makes a connection of its own for each request: follows nothing, keeps nothing. TLS is always
    verified, by `make_tls`, which is called when it is first needed.
    """

    resolve: Resolve = attrs.field(factory=SystemResolver)
    make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    _tls: ssl.SSLContext | None = attrs.field(default=None, init=False)
    _making_tls: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        """Raises `HttpTrouble`, `NotSendable`, or what the guard raises."""
        origin, target = address_of(url)
        addresses = await checked_addresses(origin.host, policy, self.resolve)
        tls = await self._tls_for(origin)
        connection = await _connected(origin, tls, addresses)
        try:
            request = HttpRequest("POST", origin, target, headers, body)
            return await connection.exchange(request, ANSWER_BYTES_MAX)
        finally:
            connection.close()

    async def _tls_for(self, origin: Origin) -> ssl.SSLContext | None:
        if origin.scheme != "https":
            return None
        async with self._making_tls:
            if self._tls is None:  # reads hundreds of certificates: not on the loop
                limiter = trio.CapacityLimiter(1)
                self._tls = await trio.to_thread.run_sync(self.make_tls, limiter=limiter)
        return self._tls


async def _connected(
    origin: Origin, tls: ssl.SSLContext | None, addresses: Sequence[str]
) -> Connection:
    trouble = HttpTrouble(f"{origin.host} has no address")
    for address in addresses:
        try:
            return await connect(origin, tls, address)
        except HttpTrouble as error:
            trouble = error
    raise trouble
