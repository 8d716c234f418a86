"""How large the crew should be. Pure: an observation and a memory go in, a plan and a new memory
come out. Also how the tenants of a node share its workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from musterd.config.scaling import NO_GUARD, Guard, Mode, PolicyName
from musterd.manager.scaling.guard import GuardLimit, Machine, guarded
from musterd.manager.scaling.latency import Promises, WantedCrew, Work, latency_wish, slack_seconds
from musterd.manager.scaling.steps import ANY_STEP, Bounds, StepLimit, Steps
from musterd.store.queue import SpareCapacity

WHOLE = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15  # of the golden ratio: lots that lie side by side fall far apart

Bound = Literal["min", "max", "shared", "max_running"]
Limit = Literal[
    Bound, StepLimit, GuardLimit, "up_cooldown", "down_cooldown", "stabilization", "busy",
    "no_observation", "hold", "shadow",
]  # fmt: skip
NO_PROMISES = Promises()


@attrs.frozen
class ScalingPolicy:
    """`demand`: due and running jobs. `depth`: due jobs only. `latency`: what the promises take.
    All within the two counts.
    """

    policy: PolicyName
    default_count: int
    max_count: int
    up_cooldown_seconds: float
    down_cooldown_seconds: float
    stabilization_seconds: float
    allowance: int | None = None  # what other tenants leave of the node's workers; None = enough
    max_running: int | None = None  # jobs that may run at once, on all nodes; None = any number
    promises: Promises = NO_PROMISES
    steps: Steps = ANY_STEP
    guard: Guard = NO_GUARD
    mode: Mode = "active"
    floor_by: str | None = None  # the hours that say so; None = the setting does
    ceiling_by: str | None = None

    @property
    def bound(self) -> int:
        """The largest possible crew. More workers than jobs may run would be useless."""
        bounds = (self.max_count, self.allowance, self.max_running)
        return min(one for one in bounds if one is not None)

    @property
    def window_seconds(self) -> float:
        """A crew stays as large as the largest wish of that time. Under `latency`, where turns are
        counted, it only has to bridge looks when few jobs happen to be in hand.
        """
        is_latency = self.policy == "latency"
        return self.stabilization_seconds / 5 if is_latency else self.stabilization_seconds


@attrs.frozen
class Others:
    """The rest of the cluster: how many more jobs the other nodes could run, and how many of these
    are on nodes before this one. Nodes that see the same due jobs get the same `lot`.
    """

    free: int = 0
    before: int = 0
    lot: int = 0


NOBODY = Others()


def others_of(room: SpareCapacity, lot: int, *, all_busy: bool) -> Others:
    """What others can take. `all_busy`: if all workers here have found work, theirs have too,
    whatever they reported; only new workers can take what is still due.
    """
    if all_busy:
        return Others(room.unhired, room.unhired_before, lot)
    return Others(room.free, room.free_before, lot)


@attrs.frozen
class Situation:
    """`due` None = the observation failed. `size` excludes leaving workers. `overdue`: jobs are due
    for so long that some node cannot have taken its share. `room`: how many more jobs may run on
    all nodes; None = any number. `work`: for `latency` only; None = unknown. `machine`: for the
    guard; None = it is off.
    """

    due: int | None
    busy: int
    size: int
    others: Others = NOBODY
    overdue: bool = False
    room: int | None = None
    work: Work | None = None
    machine: Machine | None = None


@attrs.frozen
class Memory:
    """What one tick leaves to the next: when the crew last changed, when it last began to shrink
    after it had grown, and recent wishes.
    """

    grew_at: float = float("-inf")
    shrank_at: float = float("-inf")
    turned_at: float = float("-inf")
    wishes: tuple[tuple[float, int], ...] = ()

    @property
    def is_grown(self) -> bool:
        """Whether the last change was to grow."""
        return self.grew_at > self.shrank_at

    def changed(self, by: int, now: float) -> Memory:
        if by > 0:
            return attrs.evolve(self, grew_at=now)
        if by < 0:
            turned_at = now if self.is_grown else self.turned_at
            return attrs.evolve(self, shrank_at=now, turned_at=turned_at)
        return self


@attrs.frozen
class Plan:
    """`limited_by` names the limit that decided; None = the wish was granted."""

    raw_wish: int | None
    desired: int
    limited_by: str | None  # of `Limit`, or `hours:NAME`


def share(seen: Situation, policy: ScalingPolicy) -> int | None:
    """The due jobs that fall to this node; None = unknown."""
    return None if seen.due is None else _part_of(seen.due, seen, policy)


def raw_wish(seen: Situation, policy: ScalingPolicy) -> int | None:
    """The wanted crew regardless of limits; None = unknown."""
    return wish_of(seen, policy).workers


def wish_of(seen: Situation, policy: ScalingPolicy) -> WantedCrew:
    """The wanted crew regardless of limits, and why. `latency` never wishes for more than `demand`,
    and for a worker at least while jobs are due.
    """
    part = share(seen, policy)
    if part is None:
        return WantedCrew(None)
    slack = None if seen.work is None else slack_seconds(seen.work, policy.promises)
    if policy.policy == "depth":
        return WantedCrew(part, "depth", slack_seconds=slack)
    demand = part + seen.busy
    if policy.policy == "demand" or seen.work is None:
        return WantedCrew(demand, "demand", slack_seconds=slack)
    whole = _free(seen, policy) + seen.others.free
    fraction = _free(seen, policy) / whole if seen.others.free else 1.0
    wish = latency_wish(seen.work, fraction, policy.promises)
    workers = max(wish.workers or 0, min(1, part))
    if workers > demand:
        return attrs.evolve(wish, workers=demand, because="demand", decided_by=None)
    if workers < policy.default_count:
        return attrs.evolve(wish, workers=workers, because="floor", decided_by=None)
    return attrs.evolve(wish, workers=workers)


def useful_size(seen: Situation, policy: ScalingPolicy) -> int | None:
    """The largest crew with something to do while `max_running` limits jobs; None = no limit."""
    return None if seen.room is None else seen.busy + _part_of(seen.room, seen, policy)


def useful_wish(seen: Situation, policy: ScalingPolicy, wanted: WantedCrew | None = None) -> int:
    """The wish as far as it has something to do; without an observation, the current size.
    `wanted`: of `wish_of`, if it has been worked out.
    """
    wish = (wanted or wish_of(seen, policy)).workers
    bounds = (seen.size if wish is None else wish, useful_size(seen, policy), policy.max_running)
    return min(one for one in bounds if one is not None)


def share_of(due: int, free: int, others: Others, *, overdue: bool = False) -> int:
    """A part of `due` in proportion to this node's `free`.

    The parts of nodes that see the same add up to `due` exactly. Odd jobs go to nodes picked by the
    lot, more often to nodes with more room. `overdue`: some node has not taken its part; then each
    rounds up, so that nothing is left to it.
    """
    whole = free + others.free
    if not others.free:
        return due
    if overdue:
        return -(-due * free // whole)
    # All nodes side by side on one line; a job falls to the node at the place where it comes down.
    start = (others.lot * GOLDEN % WHOLE) * whole // WHOLE
    return (due * (others.before + free) + start) // whole - (due * others.before + start) // whole


def _part_of(number: int, seen: Situation, policy: ScalingPolicy) -> int:
    return share_of(number, _free(seen, policy), seen.others, overdue=seen.overdue)


def _free(seen: Situation, policy: ScalingPolicy) -> int:
    return max(0, policy.max_count - seen.busy)


def decide(
    seen: Situation,
    memory: Memory,
    policy: ScalingPolicy,
    now: float,
    wanted: WantedCrew | None = None,
) -> tuple[Plan, Memory]:
    """Grows at once except during its cooldown; shrinks to the window's highest wish. `wanted`: as
    in `useful_wish`.
    """
    raw = (wanted or wish_of(seen, policy)).workers
    if raw is None or policy.mode == "hold":
        desired, clamp = within_bounds(seen.size, policy)
        return Plan(raw, desired, clamp or ("no_observation" if raw is None else "hold")), memory
    wish, clamp = _clamp(raw, policy, useful_size(seen, policy))
    # Of earlier wishes those that may still be the highest: each is below the previous.
    oldest = now - policy.window_seconds
    kept = [one for one in memory.wishes if one[0] > oldest and one[1] > wish]
    memory = attrs.evolve(memory, wishes=(*kept, (now, wish)))
    desired, limit = wish, clamp
    if wish > seen.size and now - memory.grew_at < policy.up_cooldown_seconds:
        desired, limit = max(seen.size, min(policy.default_count, policy.bound)), "up_cooldown"
    elif wish < seen.size:
        desired, limit = _shrink(wish, clamp, seen, memory, policy, now)
    bounds = Bounds(policy.default_count, policy.bound)
    desired, step = policy.steps.taken(seen.size, raw, desired, bounds)
    limit = step or limit
    if seen.machine is not None:
        desired, held = guarded(seen.size, desired, policy.guard, seen.machine)
        limit = held or limit
    return Plan(raw, desired, limit), memory.changed(desired - seen.size, now)


def within_bounds(size: int, policy: ScalingPolicy) -> tuple[int, str | None]:
    """What a crew becomes that stays as it is."""
    return _clamp(size, policy)


def _clamp(wish: int, policy: ScalingPolicy, useful: int | None = None) -> tuple[int, str | None]:
    bound, floor = policy.bound, policy.default_count
    kept = wish if useful is None else max(useful, floor)  # the floor stays: it looks for room
    if kept < wish and kept <= bound and kept < policy.max_count:
        return kept, "max_running"
    if max(wish, floor) > bound:
        return bound, _bound_name(policy)
    if wish < floor:
        return floor, f"hours:{policy.floor_by}" if policy.floor_by else "min"
    return wish, None


def _bound_name(policy: ScalingPolicy) -> str:
    """What makes the bound so low. Other tenants leave no more than was wished for, which
    `max_running` already limits: if both agree, that is the reason.
    """
    if policy.bound == policy.max_count:
        return f"hours:{policy.ceiling_by}" if policy.ceiling_by else "max"
    return "max_running" if policy.bound == policy.max_running else "shared"


def _shrink(
    wish: int,
    clamp: str | None,
    seen: Situation,
    memory: Memory,
    policy: ScalingPolicy,
    now: float,
) -> tuple[int, str | None]:
    highest = max(size for _, size in memory.wishes)
    over = seen.size > policy.bound  # the bound was lowered: no window holds a crew above it
    if highest > wish and not over:
        wish, clamp = min(highest, seen.size), "stabilization"
    if wish < seen.size and not over and _turned_too_soon(memory, policy, now):
        return seen.size, "stabilization"
    if wish < seen.size and not over and now - memory.shrank_at < policy.down_cooldown_seconds:
        return seen.size, "down_cooldown"
    return wish, clamp


def _turned_too_soon(memory: Memory, policy: ScalingPolicy, now: float) -> bool:
    """Under `latency` a crew that has grown keeps its size until two windows after it last began to
    shrink, and so turns round once a window at most: to grow again nothing keeps it.
    """
    is_asked = policy.policy == "latency" and memory.is_grown
    return is_asked and now - memory.turned_at < 2 * policy.stabilization_seconds


TURN_SECONDS = 10.0  # how long a worker that not all can have stays where it is


@attrs.frozen
class Ask:
    """One tenant. `size` excludes its `leaving` workers."""

    floor: int
    most: int
    wish: int
    size: int
    leaving: int = 0

    @property
    def goal(self) -> int:
        return max(self.floor, min(self.wish, self.most))


def entitled(asks: Mapping[str, Ask], overall: int, turn: Sequence[str]) -> dict[str, int]:
    """How large each crew should be; together never above `overall`. `turn`: which comes first if
    fewer workers are left over than could be used. The floors must fit.
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
    """How far this crew may grow now: other tenants' workers count until they have left."""
    own = asks[name]
    room = overall - sum(ask.size + ask.leaving for ask in asks.values())
    return min(allowed, own.size + own.leaving + max(0, room))


@attrs.frozen
class Turns:
    """Whose turn it is."""

    order: tuple[str, ...] = ()
    since: float = 0.0


def next_turns(turns: Turns, names: Sequence[str], now: float) -> Turns:
    """Every `TURN_SECONDS` the first goes to the end; new tenants come last."""
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
