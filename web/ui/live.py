"""What is new in the views. All who look at one view share what was made for it:
a hundred open pages cost one look at the store and one rendering.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping

import attrs
import trio

from musterd.web.pages.html import Html

LOOK_SECONDS = 0.3  # between two looks at what a view shows
LOOKS_A_SECOND = 20  # of all views together: where there are many, each is looked at less often
MESSAGES_KEPT = 8  # of one state of a view, for readers who stand at different ones

Parts = Mapping[str, Html]


class Gone(Exception):
    """There is nothing to show any more."""


@attrs.frozen
class Key:
    """What is looked at, and by whom as far as that makes a difference."""

    view: str
    tenant: str
    may_act: bool
    job_id: int | None = None


@attrs.define(eq=False)
class Shown:
    """One view as it was when somebody last looked. `make` gives None where nothing can be said,
    and raises `Gone`.
    """

    make: Callable[[], Awaitable[Parts | None]]
    spacing_seconds: Callable[[], float]
    readers: int = 0
    state: int = 0  # grows with each change
    is_gone: bool = False
    is_away: bool = False
    _parts: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    _changed: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    _messages: dict[int, bytes] = attrs.field(factory=dict[int, bytes], init=False)
    _looked_local: float = attrs.field(default=float("-inf"), init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def look(self) -> None:
        """Looks, if nobody has lately; waits until it is time."""
        async with self._turn:
            due_local = self._looked_local + self.spacing_seconds()
            if trio.current_time() < due_local:
                return
            self._looked_local = trio.current_time()
            try:
                self._take(await self.make())
            except Gone:
                self.is_gone, self.state = True, self.state + 1

    @property
    def next_local(self) -> float:
        return self._looked_local + self.spacing_seconds()

    def news(self, since: int) -> bytes:
        """What a reader gets who has all up to this state; 0 = who has nothing."""
        if since not in self._messages:
            if len(self._messages) >= MESSAGES_KEPT:
                self._messages.clear()
            self._messages[since] = self._message(since)
        return self._messages[since]

    def _message(self, since: int) -> bytes:
        if self.is_gone:
            return message("gone", "")
        if self.is_away:
            return message("away", "the store does not answer")
        new = {name: text for name, text in self._parts.items() if self._changed[name] > since}
        return message("parts", new)

    def _take(self, parts: Parts | None) -> None:
        if parts is None:
            self.state += not self.is_away
            self.is_away = True
            self._messages.clear()
            return
        texts = {name: part.text for name, part in parts.items()}
        new = [name for name, text in texts.items() if self._parts.get(name) != text]
        if new or self.is_away:
            self.state += 1
            self._messages.clear()
        self._changed |= dict.fromkeys(new, self.state)
        self._parts, self.is_away = texts, False


class Live:
    """The views that somebody looks at now."""

    def __init__(self) -> None:
        self.shown: dict[Key, Shown] = {}

    def enter(self, key: Key, make: Callable[[], Awaitable[Parts | None]]) -> Shown:
        found = self.shown.setdefault(key, Shown(make, self._spacing_seconds))
        found.readers += 1
        return found

    def leave(self, key: Key) -> None:
        found = self.shown[key]
        found.readers -= 1
        if not found.readers:
            del self.shown[key]

    def _spacing_seconds(self) -> float:
        return max(LOOK_SECONDS, len(self.shown) / LOOKS_A_SECOND)


def message(name: str, value: object) -> bytes:
    # JSON with everything but ASCII escaped has no line end in it.
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
