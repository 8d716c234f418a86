"""The settings that a running node goes by at the moment."""

from collections.abc import Callable

from musterd.config.settings import Settings


class LiveSettings:
    """One for a node and one for each of its tenants. A reload replaces them whole; code reads
    `now` where it acts, and keeps no copy.

    Keys that apply only at a restart keep the value of the start: `changes` sees to that.
    """

    def __init__(self, settings: Settings) -> None:
        self._now = settings
        self._subscribers: list[Callable[[], None]] = []

    @property
    def now(self) -> Settings:
        return self._now

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Calls `on_change` after each replacement: for whatever sleeps by an old value, or has
        made something of it. It must not fail.
        """
        self._subscribers.append(on_change)

    def replace(self, settings: Settings) -> None:
        """Synchronous: everybody goes by the new settings when this returns."""
        self._now = settings
        for on_change in self._subscribers:
            on_change()
