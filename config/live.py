"""The current settings of a running node."""

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
        """Calls `on_change` after each replacement. For code that sleeps by an old value, or has
        derived something from it. It must not fail.
        """
        self._subscribers.append(on_change)

    def replace(self, settings: Settings) -> None:
        """Synchronous: when it returns, the new settings are in effect everywhere."""
        self._now = settings
        for on_change in self._subscribers:
            on_change()
