"""Which instances to start and which to drain. Pure.

An instance is one of `musterd@1` to `musterd@N`. At least one is kept, no other than these is
touched, and one that failed is left to people: systemd has tried it again as often as it may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import attrs

State = Literal["up", "starting", "leaving", "down", "failed"]
STATES: Mapping[str, State] = {
    "active": "up",
    "reloading": "up",
    "refreshing": "up",
    "activating": "starting",
    "deactivating": "leaving",
    "maintenance": "leaving",
    "inactive": "down",
    "failed": "failed",
}  # by ActiveState of systemd


@attrs.frozen
class Memory:
    """What was wanted of late, so that a moment without work drains nobody: when, and how many.
    Each is below the one before it.
    """

    wanted: tuple[tuple[float, int], ...] = ()
    since: float | None = None  # the first look


@attrs.frozen
class Plan:
    """Numbers of instances. `kept`: as many as were wanted at most within the time to linger."""

    start: tuple[int, ...] = ()
    drain: tuple[int, ...] = ()
    kept: int = 1


def plan(
    desired: int | None,
    states: Mapping[int, State],
    memory: Memory,
    now: float,
    linger_seconds: float,
) -> tuple[Plan, Memory]:
    """`desired`: nodes that there is work for; None = unknown, and nobody is drained. `states`: of
    all instances that there may be.
    """
    up, starting = _in(states, "up"), _in(states, "starting")
    present = len(up) + len(starting)
    wanted = present if desired is None else desired
    wanted = max(1, min(wanted, len(states)))
    since = now if memory.since is None else memory.since
    oldest = now - linger_seconds
    recent = tuple(one for one in memory.wanted if one[0] > oldest and one[1] > wanted)
    memory = Memory((*recent, (now, wanted)), since)
    start = _in(states, "down")[: max(0, wanted - present)]
    kept = max(size for _, size in memory.wanted)
    # Before the first look, more may have been wanted. One is up at any time.
    surplus = 0 if since > oldest else min(present - kept, len(up) - 1)
    drain = tuple(reversed(up))[: max(0, surplus)]
    return Plan(start, drain, kept), memory


def _in(states: Mapping[int, State], wanted: State) -> tuple[int, ...]:
    return tuple(number for number, state in sorted(states.items()) if state == wanted)


def states_text(states: Mapping[int, State]) -> str:
    """As `2 up, 1 leaving`."""
    counted: Iterable[tuple[State, int]] = (
        (one, len(_in(states, one))) for one in ("up", "starting", "leaving", "failed")
    )
    return ", ".join(f"{number} {state}" for state, number in counted if number) or "none up"
