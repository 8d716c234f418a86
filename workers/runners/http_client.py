"""An HTTP/1.1 client for one node: sends, reads an answer up to a limit, keeps connections.

Made for jobs, so it lacks what would surprise one: it follows no redirect, keeps no cookie, obeys
no proxy variable, unpacks nothing. A connection on which a server has sent more than it announced
is closed: the rest must not become the answer to the next job.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable

import attrs
import trio

from musterd.workers.runners.http_connection import (
    Answer,
    Connection,
    HttpRequest,
    HttpTrouble,
    Origin,
    connect,
)

IDLE_SECONDS_MAX = 15.0  # many servers close an idle connection after 20 s or more
IDLE_MAX = 64


@attrs.define(eq=False)
class HttpClient:
    """Owned by the daemon, shared by all workers; `close` ends what it keeps.

    TLS is always verified: by `make_tls`, which is called when it is first needed.
    """

    make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    _tls: ssl.SSLContext | None = attrs.field(default=None, init=False)
    _making_tls: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _idle: deque[tuple[float, Connection]] = attrs.field(
        factory=deque[tuple[float, Connection]], init=False
    )  # and since when, the longest first

    async def send(self, request: HttpRequest, answer_bytes_max: int) -> Answer:
        """Gives the server's answer. Raises `HttpTrouble` if there is none, or half of one."""
        kept = self._take(request.origin)
        if kept is not None:
            try:
                return await self._exchange(kept, request, answer_bytes_max)
            except HttpTrouble:
                if kept.heard:
                    raise
                # Not a byte came: the server had closed it while it lay idle. A fresh one will do.
        fresh = await connect(request.origin, await self._tls_for(request.origin))
        return await self._exchange(fresh, request, answer_bytes_max)

    def close(self) -> None:
        while self._idle:
            self._idle.popleft()[1].close()

    async def _exchange(
        self, connection: Connection, request: HttpRequest, answer_bytes_max: int
    ) -> Answer:
        try:
            answer = await connection.exchange(request, answer_bytes_max)
        except BaseException:
            connection.close()
            raise
        if connection.begin_anew():
            self._keep(connection)
        else:
            connection.close()
        return answer

    def _take(self, origin: Origin) -> Connection | None:
        self._close_old()
        for place in reversed(range(len(self._idle))):
            connection = self._idle[place][1]
            if connection.origin == origin:
                del self._idle[place]
                if connection.is_quiet():
                    return connection
                connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        self._idle.append((trio.current_time(), connection))
        if len(self._idle) > IDLE_MAX:
            self._idle.popleft()[1].close()
        self._close_old()

    def _close_old(self) -> None:
        oldest = trio.current_time() - IDLE_SECONDS_MAX
        while self._idle and self._idle[0][0] < oldest:
            self._idle.popleft()[1].close()

    async def _tls_for(self, origin: Origin) -> ssl.SSLContext | None:
        if origin.scheme != "https":
            return None
        async with self._making_tls:
            if self._tls is None:  # reads hundreds of certificates: not on the loop
                own = trio.CapacityLimiter(1)
                self._tls = await trio.to_thread.run_sync(self.make_tls, limiter=own)
        return self._tls
