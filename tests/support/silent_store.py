"""What a store does that does not answer."""

from __future__ import annotations

from typing import Any

import trio

from musterd.store.errors import StoreUnavailable


async def hanging() -> Any:
    await trio.sleep_forever()


async def gone() -> Any:
    await trio.lowlevel.checkpoint()
    raise StoreUnavailable("connection refused", "unreachable")
