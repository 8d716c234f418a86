"""The node's bound on workers, kept over the crews of all its tenants.

Synchronous throughout: what one tenant is told still holds when it hires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from musterd.config.live import LiveSettings
from musterd.manager.scaling.sharing import Ask, Turns, allowances, ceiling, next_turns


class Member(Protocol):
    """A tenant's crew and who sizes it."""

    def ask(self) -> Ask: ...

    def shrink(self, count: int) -> None:
        """The surplus leaves: who is idle at once, the others as each finishes its job."""
        ...

    def wake(self) -> None:
        """Time to decide again."""
        ...


@attrs.define(eq=False)
class TenantLimits:
    """Owned by the daemon. One member alone is bounded by its own maximum, nothing else."""

    settings: LiveSettings  # of the node
    clock: Callable[[], float]
    _members: dict[str, Member] = attrs.field(factory=dict[str, Member], init=False)
    _short: set[str] = attrs.field(factory=set[str], init=False)  # wait for somebody to leave
    _turns: Turns = attrs.field(factory=Turns, init=False)

    @property
    def overall(self) -> int:
        """The most workers of all tenants together."""
        return self.settings.now.workers.max_count

    @property
    def is_shared(self) -> bool:
        return len(self._members) > 1

    def join(self, name: str, member: Member) -> None:
        self._members[name] = member

    def leave(self, name: str) -> None:
        self._members.pop(name, None)
        self.freed()

    def allowance(self, name: str) -> int:
        """How large this tenant's crew may be now, with the wish that it has. Who has more than is
        his meanwhile gives it back: `freed` tells when it has come.
        """
        if not self.is_shared:
            return self.overall
        asks = {each: member.ask() for each, member in self._members.items()}
        self._turns = next_turns(self._turns, list(asks), self.clock())
        allowed = allowances(asks, self.overall, self._turns.order)
        self._shrink_others(name, asks, allowed)
        asks = {each: member.ask() for each, member in self._members.items()}
        found = ceiling(name, asks, allowed[name], self.overall)
        if found < min(allowed[name], asks[name].goal):
            self._short.add(name)
        return found

    def freed(self) -> None:
        """A worker has left, or a bound was changed: who waits for one decides again."""
        short, self._short = self._short, set()
        for name in short & self._members.keys():
            self._members[name].wake()

    def _shrink_others(self, name: str, asks: dict[str, Ask], allowed: dict[str, int]) -> None:
        for other, ask in asks.items():
            if other != name and ask.size > allowed[other]:
                self._members[other].shrink(allowed[other])
