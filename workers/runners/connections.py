"""The node's HTTP client, made when a kind first needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from musterd.workers.runners.http_client import HttpClient


@attrs.define(eq=False)
class Connections:
    """Owned by the daemon, shared by its workers. Costs nothing where no kind makes HTTP calls."""

    _client: HttpClient | None = attrs.field(default=None, init=False)

    def client(self) -> HttpClient:
        if self._client is None:
            from musterd.workers.runners.http_client import HttpClient  # noqa: PLC0415 - HTTP kinds alone need it

            self._client = HttpClient()
        return self._client

    def close(self) -> None:
        """Ends what lies idle; safe to call twice, and where there never was a client."""
        if self._client is not None:
            self._client.close()
