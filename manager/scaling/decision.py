"""How large the crew should be: pure. What was seen and what was remembered go in, a plan and a new
memory come out. Below that, how the tenants of a node share its workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from musterd.store.queue import SpareCapacity

WHOLE = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15  # of the golden ratio: lots that lie side by side fall far apart

Bound = Literal["min", "max", "shared", "max_running"]
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
    max_running: int | None = None  # jobs that may run at once, on all nodes; None = any number

    @property
    def bound(self) -> int:
        """The largest crew that may be. Workers beyond the jobs that may run are useless."""
        bounds = (self.max_count, self.allowance, self.max_running)
        return min(one for one in bounds if one is not None)


@attrs.frozen
class Others:
    """The rest of the cluster: how many more jobs the other nodes could run, and how many of these
    are with nodes that come before this one. `lot` is the same for all that see the same due jobs.
    """

    free: int = 0
    before: int = 0
    lot: int = 0


NOBODY = Others()


def others_of(room: SpareCapacity, lot: int, *, all_busy: bool) -> Others:
    """What to expect of them. `all_busy`: this node's own workers have all found work, so have
    theirs, whatever they said; only new ones can take what is still due.
    """
    if all_busy:
        return Others(room.unhired, room.unhired_before, lot)
    return Others(room.free, room.free_before, lot)


@attrs.frozen
class Situation:
    """`due` is None where the observation failed. `size` is the crew without those that are
    leaving. `overdue`: jobs have been due for so long that somebody cannot have taken his share.
    `room`: how many more jobs may run on all nodes together; None = any number.
    """

    due: int | None
    busy: int
    size: int
    others: Others = NOBODY
    overdue: bool = False
    room: int | None = None


@attrs.frozen
class Memory:
    """What one tick leaves to the next: when the crew last changed, and the recent wishes."""

    grew_at: float = float("-inf")
    shrank_at: float = float("-inf")
    wishes: tuple[tuple[float, int], ...] = ()


@attrs.frozen
class Plan:
    """`limited_by` names the clamp that had the last word; None = the wish was granted."""

    raw_wish: int | None
    desired: int
    limited_by: Limit | None


def share(seen: Situation, policy: ScalingPolicy) -> int | None:
    """What falls to this node of the jobs that are due; None = nothing was seen."""
    return None if seen.due is None else _part_of(seen.due, seen, policy)


def raw_wish(seen: Situation, policy: ScalingPolicy) -> int | None:
    """The crew wished for, whatever the limits; None = nothing was seen."""
    part = share(seen, policy)
    if part is None:
        return None
    return part + (seen.busy if policy.policy == "demand" else 0)


def useful_size(seen: Situation, policy: ScalingPolicy) -> int | None:
    """The largest crew that has something to do while no more jobs may run: its busy workers, and
    its part of what room there is. None = there is room for any number.
    """
    return None if seen.room is None else seen.busy + _part_of(seen.room, seen, policy)


def useful_wish(seen: Situation, policy: ScalingPolicy) -> int:
    """The crew wished for as far as it would have something to do: what is asked of the node, where
    tenants share its workers. Without an observation the crew as it is.
    """
    wish = raw_wish(seen, policy)
    bounds = (seen.size if wish is None else wish, useful_size(seen, policy), policy.max_running)
    return min(one for one in bounds if one is not None)


def share_of(due: int, free: int, others: Others, *, overdue: bool = False) -> int:
    """As large a part of `due` as this node's `free` is of all that is free.

    Nodes that see the same get parts that add up to `due` exactly, each less than one job off. The
    odd jobs go to nodes that the lot picks, to one with more room more often. `overdue`: somebody
    has not taken his part; then each rounds up, so that nothing is left to whoever does nothing.
    """
    whole = free + others.free
    if not others.free:
        return due
    if overdue:
        return -(-due * free // whole)
    # All nodes side by side on one line; a job falls to whoever stands where it comes down.
    start = (others.lot * GOLDEN % WHOLE) * whole // WHOLE
    return (due * (others.before + free) + start) // whole - (due * others.before + start) // whole


def _part_of(number: int, seen: Situation, policy: ScalingPolicy) -> int:
    free = max(0, policy.max_count - seen.busy)
    return share_of(number, free, seen.others, overdue=seen.overdue)


def decide(
    seen: Situation, memory: Memory, policy: ScalingPolicy, now: float
) -> tuple[Plan, Memory]:
    """Grows at once but for its cooldown; shrinks by idle workers, to the window's highest wish."""
    raw = raw_wish(seen, policy)
    if raw is None:
        return _hold(seen, policy), memory
    wish, clamp = _clamp(raw, policy, useful_size(seen, policy))
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


def _hold(seen: Situation, policy: ScalingPolicy) -> Plan:
    """Without an observation the crew stays as it is, within its bounds."""
    desired, clamp = _clamp(seen.size, policy)
    return Plan(None, desired, clamp or "no_observation")


def _clamp(wish: int, policy: ScalingPolicy, useful: int | None = None) -> tuple[int, Limit | None]:
    bound, floor = policy.bound, policy.default_count
    kept = wish if useful is None else max(useful, floor)  # the floor stays: it looks for room
    if kept < wish and kept <= bound and kept < policy.max_count:
        return kept, "max_running"
    if max(wish, floor) > bound:
        return bound, _bound_name(policy)
    return (floor, "min") if wish < floor else (wish, None)


def _bound_name(policy: ScalingPolicy) -> Bound:
    """What makes the bound as low as it is. Other tenants leave no more than was wished for, which
    is no more than may run: where both say the same, that comes first.
    """
    if policy.bound == policy.max_count:
        return "max"
    return "max_running" if policy.bound == policy.max_running else "shared"


def _shrink(
    wish: int,
    clamp: Limit | None,
    seen: Situation,
    memory: Memory,
    policy: ScalingPolicy,
    now: float,
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
    """The wishes since `oldest` that could still be the highest: each is lower than the last."""
    kept = [one for one in wishes if one[0] > oldest and one[1] > latest[1]]
    return (*kept, latest)


TURN_SECONDS = 10.0  # how long a worker that not all can have stays where it is


@attrs.frozen
class Ask:
    """One tenant. `size` is its crew without those that are leaving, which are `leaving`."""

    floor: int
    most: int
    wish: int
    size: int
    leaving: int = 0

    @property
    def goal(self) -> int:
        return max(self.floor, min(self.wish, self.most))


def entitled(asks: Mapping[str, Ask], overall: int, turn: Sequence[str]) -> dict[str, int]:
    """How large each crew should be. `turn`: who comes first where workers are left over that are
    fewer than those who could use one. The floors must fit; together it is never above `overall`.
    """
    level = _level(asks, overall)
    found = {name: _at_level(ask, level) for name, ask in asks.items()}
    left = overall - sum(found.values())
    for name in turn:
        if left > 0 and name in asks and found[name] == level < asks[name].goal:
            found[name] += 1
            left -= 1
    return found


def allowances(asks: Mapping[str, Ask], overall: int, turn: Sequence[str]) -> dict[str, int]:
    """How large each crew may be: its share, and idle workers that nobody else may have."""
    found = entitled(asks, overall, turn)
    spare = overall - sum(found.values())
    for name, ask in asks.items():
        kept = max(0, min(ask.size - found[name], spare))
        found[name] += kept
        spare -= kept
    return found


def ceiling(name: str, asks: Mapping[str, Ask], allowed: int, overall: int) -> int:
    """How far this crew may grow right now: workers of others that are still there, if only to end
    their jobs, count until they have left.
    """
    own = asks[name]
    room = overall - sum(ask.size + ask.leaving for ask in asks.values())
    return min(allowed, own.size + own.leaving + max(0, room))


@attrs.frozen
class Turns:
    """Whose turn it is, remembered from one look to the next."""

    order: tuple[str, ...] = ()
    since: float = 0.0


def next_turns(turns: Turns, names: Sequence[str], now: float) -> Turns:
    """The first one goes to the end every `TURN_SECONDS`; who is new comes last."""
    order = tuple(name for name in turns.order if name in names)
    order += tuple(name for name in names if name not in order)
    if now - turns.since >= TURN_SECONDS:
        return Turns((*order[1:], *order[:1]), now)
    return Turns(order, turns.since)


def _level(asks: Mapping[str, Ask], overall: int) -> int:
    """The highest level to which all can be raised together."""
    low, high = 0, max((ask.goal for ask in asks.values()), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_at_level(ask, middle) for ask in asks.values()) <= overall:
            low = middle
        else:
            high = middle - 1
    return low


def _at_level(ask: Ask, level: int) -> int:
    return max(ask.floor, min(level, ask.goal))
