"""Ending a wait when something else happens."""

from __future__ import annotations

import trio


async def cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
