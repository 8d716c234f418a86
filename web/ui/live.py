"""Live updates. Readers of one view share them: one look at the store, one rendering."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import attrs
import trio

from musterd.store.jobs import JobFilter
from musterd.web.pages.layout import Html
from musterd.web.pages.pictures import RANGE

LOOK_SECONDS = 0.3  # at least, between two looks at one view
LOOKS_PER_SECOND = 20  # of all views together: the more views, the less often each is made
PING_SECONDS = 10.0  # so that a page that hears nothing for long knows that it is cut off
MESSAGES_KEPT = 8  # of one version, for readers that have different earlier ones

Parts = Mapping[str, Html]
Make: TypeAlias = Callable[[], Awaitable[Parts | None]]
Write: TypeAlias = Callable[[bytes], Awaitable[None]]


class Gone(Exception):
    """The job or the tenant no longer exists."""


@attrs.frozen
class Key:
    """A view, and what of its reader affects it."""

    view: str
    tenant: str
    may_act: bool
    job_id: int | None = None
    chosen: str = RANGE  # of its charts
    ids: tuple[int, ...] = ()  # of the rows it shows
    newer: JobFilter | None = None  # what newer jobs are counted by


@attrs.define(eq=False)
class LiveView:
    """A view as of its last look. `make` raises `Gone`; None = the store does not answer."""

    make: Make
    spacing_seconds: Callable[[], float]
    readers: int = 0
    version: int = 0  # grows with each change
    is_gone: bool = False
    is_away: bool = False
    _parts: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    _changed: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    _messages: dict[int, bytes] = attrs.field(factory=dict[int, bytes], init=False)
    _looked_local: float = attrs.field(default=float("-inf"), init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def look(self) -> None:
        """Makes the view again, unless that was done a moment ago."""
        async with self._turn:
            due_local = self._looked_local + self.spacing_seconds()
            if trio.current_time() < due_local:
                return
            self._looked_local = trio.current_time()
            try:
                self._take(await self.make())
            except Gone:
                self.is_gone, self.version = True, self.version + 1

    @property
    def next_local(self) -> float:
        return self._looked_local + self.spacing_seconds()

    def changes_since(self, since: int) -> bytes:
        """The message for a reader of this version; 0 = one that has nothing."""
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
            self.version += not self.is_away
            self.is_away = True
            self._messages.clear()
            return
        texts = {name: part.text for name, part in parts.items()}
        new = [name for name, text in texts.items() if self._parts.get(name) != text]
        if new or self.is_away:
            self.version += 1
            self._messages.clear()
        self._changed |= dict.fromkeys(new, self.version)
        self._parts, self.is_away = texts, False


class LiveViews:
    """The views that have readers."""

    def __init__(self) -> None:
        self.views: dict[Key, LiveView] = {}

    async def follow(
        self, key: Key, make: Make, may_look: Callable[[], bool], write: Write
    ) -> None:
        """Writes changes until the reader may no longer look or the view is gone."""
        view = self.enter(key, make)
        try:
            version, sent_local = 0, trio.current_time()
            while may_look():
                await view.look()
                text = b""
                if view.version != version:
                    text, version = view.changes_since(version), view.version
                elif trio.current_time() - sent_local >= PING_SECONDS:
                    text = message("ping", "")
                if text:
                    sent_local = trio.current_time()
                    await write(text)
                if view.is_gone:
                    return
                await trio.sleep_until(view.next_local)
        finally:
            self.leave(key)

    def enter(self, key: Key, make: Make) -> LiveView:
        found = self.views.setdefault(key, LiveView(make, self._spacing_seconds))
        found.readers += 1
        return found

    def leave(self, key: Key) -> None:
        found = self.views[key]
        found.readers -= 1
        if not found.readers:
            del self.views[key]

    def _spacing_seconds(self) -> float:
        return max(LOOK_SECONDS, len(self.views) / LOOKS_PER_SECOND)


def message(name: str, value: object) -> bytes:
    # JSON with everything but ASCII escaped has no line end in it.
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
