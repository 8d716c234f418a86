"""One answer of a store for everyone who asks, asked for only now and then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

import attrs
import trio

from musterd.store.errors import StoreError

COUNTS_FRESH_SECONDS = 1.0
HEALTH_FRESH_SECONDS = 30.0
LIMIT_SECONDS = 2.0

T = TypeVar("T")


@attrs.define(eq=False)
class StoreCache(Generic[T]):
    """Shares one answer among all readers. A store that is away, or slow, gives None, for
    `fresh_seconds` too. `on_answer` gets each new answer.
    """

    ask: Callable[[], Awaitable[T]]
    fresh_seconds: float
    on_answer: Callable[[T | None], None] = lambda _: None
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _answer: T | None = attrs.field(default=None, init=False)
    _asked_local: float = attrs.field(default=float("-inf"), init=False)

    async def get(self) -> T | None:
        """Gives an answer that is fresh enough, or None if the store does not say."""
        async with self._lock:
            if trio.current_time() - self._asked_local >= self.fresh_seconds:
                self._answer = None
                with trio.move_on_after(LIMIT_SECONDS), suppress(StoreError):
                    self._answer = await self.ask()  # what goes wrong, the engine has logged
                self._asked_local = trio.current_time()
                self.on_answer(self._answer)
            return self._answer

    async def refresh(self) -> int:
        """As `get`; gives how many answers it has got."""
        return int(await self.get() is not None)

    def forget(self) -> None:
        """The next reader gets a fresh answer."""
        self._asked_local = float("-inf")
