"""How large the crew should be: pure. What was seen and what was remembered go in, a plan and a new
memory come out.
"""

from __future__ import annotations

from typing import Literal

import attrs

Bound = Literal["min", "max", "shared"]
Limit = Literal[Bound, "up_cooldown", "down_cooldown", "stabilization", "busy", "no_observation"]
Policy = Literal["demand", "depth"]


@attrs.frozen
class ScalingPolicy:
    """`demand`: due and running jobs. `depth`: due jobs alone. Both between the two counts."""

    policy: Policy
    default_count: int
    max_count: int
    up_cooldown_seconds: float
    down_cooldown_seconds: float
    stabilization_seconds: float
    allowance: int | None = None  # what other tenants leave of the node's workers; None = enough

    @property
    def bound(self) -> int:
        """The largest crew that may be, for whichever reason."""
        return self.max_count if self.allowance is None else min(self.max_count, self.allowance)


@attrs.frozen
class Seen:
    """`due` is None where the observation failed. `size` is the crew without those that are
    leaving.
    """

    due: int | None
    busy: int
    size: int


@attrs.frozen
class Memory:
    """What one tick leaves to the next: when the crew last changed, and the wishes of the
    stabilization window.
    """

    grew_at: float = float("-inf")
    shrank_at: float = float("-inf")
    wishes: tuple[tuple[float, int], ...] = ()


@attrs.frozen
class Plan:
    """`limited_by` names the clamp that had the last word; None = the wish was granted."""

    raw_wish: int | None
    desired: int
    limited_by: Limit | None


def raw_wish(seen: Seen, policy: ScalingPolicy) -> int | None:
    """The crew wished for, whatever the limits; None = nothing was seen."""
    if seen.due is None:
        return None
    return seen.due + (seen.busy if policy.policy == "demand" else 0)


def decide(seen: Seen, memory: Memory, policy: ScalingPolicy, now: float) -> tuple[Plan, Memory]:
    """Grows at once (but for its cooldown), shrinks slowly: to the highest wish of the window, and
    only by idle workers.
    """
    raw = raw_wish(seen, policy)
    if raw is None:
        return _hold(seen, policy), memory
    wish, clamp = _clamp(raw, policy)
    wishes = _window(memory.wishes, (now, wish), now - policy.stabilization_seconds)
    memory = attrs.evolve(memory, wishes=wishes)
    desired, limit = wish, clamp
    if wish > seen.size and now - memory.grew_at < policy.up_cooldown_seconds:
        desired, limit = max(seen.size, min(policy.default_count, policy.bound)), "up_cooldown"
    elif wish < seen.size:
        desired, limit = _shrink(wish, clamp, seen, memory, policy, now)
    if desired > seen.size:
        memory = attrs.evolve(memory, grew_at=now)
    elif desired < seen.size:
        memory = attrs.evolve(memory, shrank_at=now)
    return Plan(raw, desired, limit), memory


def _hold(seen: Seen, policy: ScalingPolicy) -> Plan:
    """Without an observation the crew stays as it is, within its bounds."""
    desired, clamp = _clamp(seen.size, policy)
    return Plan(None, desired, clamp or "no_observation")


def _clamp(wish: int, policy: ScalingPolicy) -> tuple[int, Limit | None]:
    bound = policy.bound
    if max(wish, policy.default_count) > bound:
        return bound, "max" if bound == policy.max_count else "shared"
    if wish < policy.default_count:
        return policy.default_count, "min"
    return wish, None


def _shrink(
    wish: int, clamp: Limit | None, seen: Seen, memory: Memory, policy: ScalingPolicy, now: float
) -> tuple[int, Limit | None]:
    highest = max(size for _, size in memory.wishes)
    over = seen.size > policy.bound  # the bound was lowered: no window holds a crew above it
    if highest > wish and not over:
        wish, clamp = min(highest, seen.size), "stabilization"
    if wish < seen.size and not over and now - memory.shrank_at < policy.down_cooldown_seconds:
        return seen.size, "down_cooldown"
    return wish, clamp


def _window(
    wishes: tuple[tuple[float, int], ...], latest: tuple[float, int], oldest: float
) -> tuple[tuple[float, int], ...]:
    """The wishes since `oldest` that could still be the highest: each is lower than those before
    it.
    """
    kept = [one for one in wishes if one[0] > oldest and one[1] > latest[1]]
    return (*kept, latest)
