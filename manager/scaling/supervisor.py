"""Watches the queue and sizes the crew: observe, decide, apply, report, once per scale interval."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.scaling import NO_GUARD, Guard
from musterd.config.schedules import of_tenant
from musterd.config.settings import LiveSettings, Settings
from musterd.manager.crew import Crew
from musterd.manager.log import Log, event
from musterd.manager.node.status import Decision
from musterd.manager.scaling.candidate import ImaginedCrew, candidate_of, decided_beside, shadowed
from musterd.manager.scaling.decision import (
    Ask,
    Memory,
    Plan,
    ScalingPolicy,
    Situation,
    Turns,
    allowances,
    ceiling,
    decide,
    next_turns,
    others_of,
    share,
    useful_wish,
    wish_of,
)
from musterd.manager.scaling.guard import YOUNG_SECONDS, Machine, is_on, unseen
from musterd.manager.scaling.hours import HoursClock, with_hours
from musterd.manager.scaling.latency import Promises, WantedCrew
from musterd.manager.scaling.observer import Observation, QueueObserver, for_both
from musterd.manager.scaling.service_times import Arrivals, Measured, ServiceTimes
from musterd.manager.scaling.steps import Steps
from musterd.manager.scaling.upcoming import NO_JOB, SlotClock
from musterd.store.engine import Engine
from musterd.store.queue import Waiting
from musterd.store.waiting import Bell
from musterd.workers.claiming.desk import Desk
from musterd.workers.idleness import Idleness, IdleState

CLOCK_SECONDS = 60.0  # somebody may put the clock forward while the supervisor rests
JOURNAL_MAX = 1000  # decisions kept in memory


class ScalingObserver(Protocol):
    def scaled(self, decision: Decision) -> None: ...

    def crew(self, idle: int, busy: int, retiring: int) -> None: ...


def policy_of(settings: Settings, catalog: Catalog) -> ScalingPolicy:
    workers, scaling = settings.workers, settings.scaling
    return ScalingPolicy(
        scaling.policy,
        workers.default_count,
        workers.max_count,
        scaling.up_cooldown_seconds,
        scaling.down_cooldown_seconds,
        scaling.stabilization_seconds,
        max_running=settings.limits.max_running or None,
        promises=Promises(
            scaling.max_wait_seconds,
            catalog.promises,
            scaling.headroom,
            workers.scale_interval_ms / 1000,
        ),
        steps=Steps(scaling.up_step, scaling.down_step, scaling.tolerance_percent),
        guard=scaling.guard,
        mode=scaling.mode,
    )


@attrs.define(eq=False)
class Supervisor:
    """Owned by its tenant. `journal` holds the latest decisions, newest last.

    While the node scans the queue, a crew at its floor with nothing to do is left alone until there
    is news. A crew without workers decides as soon as there is news, once between two ticks.
    """

    tenant: str
    limits: TenantLimits
    crew: Crew
    desk: Desk
    engine: Engine
    idleness: Idleness
    settings: LiveSettings
    observer: ScalingObserver
    log: Log
    wall_clock: Callable[[], float]
    me: UUID  # this node
    catalog: Callable[[], Catalog]
    times: ServiceTimes
    arrivals: Arrivals
    machine: Callable[[], Machine]
    wish: int = attrs.field(default=0, init=False)  # of the last tick, as far as all may run
    journal: deque[Decision] = attrs.field(factory=lambda: deque(maxlen=JOURNAL_MAX), init=False)
    _memory: Memory = attrs.field(factory=Memory, init=False)
    _shadow: ImaginedCrew | None = attrs.field(default=None, init=False)
    _candidate: ImaginedCrew | None = attrs.field(default=None, init=False)
    _hired: deque[tuple[float, int]] = attrs.field(factory=deque[tuple[float, int]], init=False)
    _guard: Guard = attrs.field(default=NO_GUARD, init=False)  # that was last looked into
    _slots: SlotClock = attrs.field(factory=SlotClock, init=False)
    _hours: HoursClock = attrs.field(factory=HoursClock, init=False)
    _may_hurry: bool = attrs.field(default=True, init=False)  # to decide before the next tick
    bell: Bell = attrs.field(factory=Bell, init=False)  # decides early, or ends a rest
    _queue_observer: QueueObserver = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.settings.subscribe(self.bell.ring)
        self.idleness.on_news(self._hear_news)
        measured = Measured(self.engine, self.times, self.me)
        self._queue_observer = QueueObserver(
            self.engine, self.desk, self.me, measured, self.arrivals, self._slots_within
        )

    def _slots_within(self, seconds: float) -> Sequence[Waiting]:
        now = self.settings.now
        return self._slots.within(of_tenant(now.schedules, now.tenant), self.wall_clock(), seconds)

    @property
    def policy(self) -> ScalingPolicy:
        """With the bounds of the hours that are in force."""
        return self._policy_of(self.settings.now)

    def _policy_of(self, settings: Settings) -> ScalingPolicy:
        policy = policy_of(settings, self.catalog())
        promises = attrs.evolve(policy.promises, hire_seconds=self.crew.hire_seconds)
        in_force = self._hours.in_force(settings.scaling.hours, self.wall_clock())
        return with_hours(attrs.evolve(policy, promises=promises), in_force)

    @property
    def candidate(self) -> ScalingPolicy | None:
        settings = candidate_of(self.settings.now)
        return None if settings is None else self._policy_of(settings)

    @property
    def _interval_seconds(self) -> float:
        return self.settings.now.workers.scale_interval_ms / 1000

    def start(self) -> None:
        """Hires the initial crew."""
        policy = self._policy_with_allowance()
        self.crew.resize(min(policy.default_count, policy.bound))
        self._report_crew()

    def _policy_with_allowance(self) -> ScalingPolicy:
        """The node may have fewer workers for this crew than it wishes for."""
        return attrs.evolve(self.policy, allowance=self.limits.allowance(self.tenant))

    def ask(self) -> Ask:
        policy, head = self.policy, self.crew.head
        if self.crew.is_closed:
            return Ask(0, 0, 0, head.size, head.retiring)
        return Ask(policy.default_count, policy.max_count, self.wish, head.size, head.retiring)

    def shrink(self, count: int) -> None:
        """The surplus leaves: idle workers at once, the others after their jobs."""
        self.crew.retire_beyond(count)
        self._report_crew()

    async def run(self) -> None:
        next_tick = trio.current_time()
        while True:
            next_tick = max(next_tick + self._interval_seconds, trio.current_time())
            may_rest = self.idleness.rest(has_nothing_to_do=self.has_nothing_to_do)
            with trio.move_on_at(self._rest_ends_at() if may_rest else next_tick) as waiting:
                await self.bell.wait()
            self._may_hurry |= waiting.cancelled_caught
            self.bell.clear()
            next_tick = min(next_tick, trio.current_time())
            policy = for_both(self.policy, self.candidate)
            self.tick(await self._queue_observer.look(policy, self._interval_seconds))

    def _rest_ends_at(self) -> float:
        """Hours may change the floor while nothing happens."""
        hours = self.settings.now.scaling.hours
        if not hours:
            return math.inf
        now = self.wall_clock()
        left_seconds = self._hours.next_change(hours, now) - now
        return trio.current_time() + min(left_seconds, CLOCK_SECONDS)

    def _hear_news(self) -> None:
        if self.idleness.state is IdleState.RESTING:
            self.bell.ring()
        elif self._may_hurry and self._is_without_workers and self.crew.head.size == 0:
            self._may_hurry = False
            self.bell.ring()

    @property
    def _is_without_workers(self) -> bool:
        """Whether the last decision left none, because there was nothing to do."""
        last = self.journal[-1] if self.journal else None
        return last is None or (last.due == 0 and last.desired == 0)

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether the last look found no work and the crew has reached its floor."""
        head = self.crew.head
        last = self.journal[-1] if self.journal else None
        is_calm = last is not None and last.due == 0 and last.desired == head.size
        at_floor = head.size <= self.policy.default_count
        return is_calm and at_floor and not (head.busy or head.retiring or self.desk.ready_count)

    def tick(self, found: Observation) -> Decision:
        """Decides and applies without a checkpoint."""
        head = self.crew.head
        busy = head.busy + self.desk.ready_count
        others = others_of(found.others, found.lot, all_busy=busy >= head.size)
        seen = Situation(found.due, busy, head.size, others, found.overdue, found.room, found.work)
        wanted = wish_of(seen, self.policy)
        acts = self.policy.mode == "active"
        self.wish = useful_wish(seen, self.policy, wanted) if acts else seen.size
        policy = self._policy_with_allowance()
        # Sharing may have let idle workers of this very crew go.
        size = self.crew.head.size
        seen = attrs.evolve(seen, size=size, machine=self._look_at_machine(size, wanted, policy))
        plan, size = self._decide(seen, policy, wanted)
        decision = self._apply(seen, plan, size, policy.bound, wanted)
        self.journal.append(decision)
        self.observer.scaled(decision)
        self._report_crew()
        return decision

    def _decide(
        self, seen: Situation, policy: ScalingPolicy, wanted: WantedCrew
    ) -> tuple[Plan, int]:
        """What is told, and the size that the crew is to have."""
        now = trio.current_time()
        if policy.mode == "shadow":
            crew = self._shadow or ImaginedCrew(seen.size)
            plan, self._shadow = crew.decide(seen, policy, now, wanted)
            return shadowed(plan, seen.size, policy)
        self._shadow = None
        plan, self._memory = decide(seen, self._memory, policy, now, wanted)
        return plan, plan.desired

    def _look_at_machine(
        self, size: int, wanted: WantedCrew, policy: ScalingPolicy
    ) -> Machine | None:
        """Only where something may be hired, or a new guard has to say what it cannot see."""
        guard, is_new = policy.guard, policy.guard != self._guard
        grows = max(wanted.workers or 0, policy.default_count) > size
        beside = self.settings.now.scaling.candidate.guard or NO_GUARD
        if not (is_on(guard) or is_on(beside)) or not (grows or is_new or self._candidate):
            self._guard = guard
            return None
        machine = self.machine()
        if is_new and (missing := unseen(guard, machine)):
            keys = " ".join(f"scaling.guard.{name}" for name in missing)
            event(self.log, logging.WARNING, "guard cannot be measured here", keys=keys)
        self._guard, since = guard, trio.current_time() - YOUNG_SECONDS
        while self._hired and self._hired[0][0] < since:
            self._hired.popleft()
        return attrs.evolve(machine, young=sum(hired for _, hired in self._hired))

    def _ask_candidate(self, seen: Situation) -> Mapping[str, object] | None:
        policy = self.candidate
        if policy is None:
            self._candidate = None
            return None
        found, self._candidate = decided_beside(seen, policy, self._candidate, trio.current_time())
        return found

    def _apply(
        self, seen: Situation, plan: Plan, size: int, bound: int, wish: WantedCrew
    ) -> Decision:
        change = self.crew.resize(size)
        if change.hired and self._guard != NO_GUARD:
            self._hired.append((trio.current_time(), change.hired))
        retired = change.retired
        limited_by: str | None = plan.limited_by
        if self.crew.head.size > bound:
            retired += self.crew.retire_beyond(bound)
        elif self.crew.head.size > size:
            limited_by = "busy"
        decision = Decision(
            at=self.wall_clock(), policy=self.policy.policy, due=seen.due, busy=seen.busy,
            size_before=seen.size, raw_wish=plan.raw_wish, desired=plan.desired,
            limited_by=limited_by, hired=change.hired, taken_back=change.taken_back,
            retired=retired, share=share(seen, self.policy), room=seen.room,
            others_free=None if seen.due is None else seen.others.free,
            because=wish.because, slack_seconds=wish.slack_seconds,
            decided_by=_decided_by(wish),
            default_count=self.policy.default_count, max_count=self.policy.max_count,
            candidate=self._ask_candidate(seen),
        )  # fmt: skip
        if change.hired or change.taken_back or retired:
            fields = attrs.asdict(decision) | {"size": self.crew.head.size}
            del fields["at"]
            if wish.decided_by is not None:
                fields["decided_by"] = "{}/{}".format(*wish.decided_by)
            if decision.candidate is not None:
                fields["candidate"] = decision.candidate["desired"]
            event(self.log, logging.INFO, "crew resized", **fields)
        return decision

    def _report_crew(self) -> None:
        self.observer.crew(*self.crew.head)


def _decided_by(wish: WantedCrew) -> Mapping[str, object] | None:
    """The job of a slot that is still to come has no id yet."""
    if wish.decided_by is None:
        return None
    kind, job = wish.decided_by
    return {"kind": kind, "job": None if job == NO_JOB else job}


@attrs.define(eq=False)
class TenantLimits:
    """Keeps the node's limit on workers over the crews of all tenants. Owned by the daemon. A
    single tenant is limited by its own maximum only.

    Synchronous: what a tenant is told still holds when it hires.
    """

    settings: LiveSettings  # of the node
    clock: Callable[[], float]
    _members: dict[str, Supervisor] = attrs.field(factory=dict[str, Supervisor], init=False)
    _short: set[str] = attrs.field(factory=set[str], init=False)  # wait for somebody to leave
    _turns: Turns = attrs.field(factory=Turns, init=False)

    @property
    def overall(self) -> int:
        return self.settings.now.workers.max_count

    def join(self, member: Supervisor) -> None:
        self._members[member.tenant] = member

    def leave(self, name: str) -> None:
        self._members.pop(name, None)
        self.freed()

    def allowance(self, name: str) -> int | None:
        """How large this tenant's crew may be now, given its wish; None = no limit. Tenants above
        their share shrink, and `freed` is called as workers leave.
        """
        if len(self._members) < 2:  # noqa: PLR2004 - alone
            return None
        asks = {each: member.ask() for each, member in self._members.items()}
        self._turns = next_turns(self._turns, list(asks), self.clock())
        allowed = allowances(asks, self.overall, self._turns.order)
        for other, ask in asks.items():
            if other != name and ask.size > allowed[other]:
                self._members[other].shrink(allowed[other])
        asks = {each: member.ask() for each, member in self._members.items()}
        found = ceiling(name, asks, allowed[name], self.overall)
        if found < min(allowed[name], asks[name].goal):
            self._short.add(name)
        return found

    def freed(self) -> None:
        """A worker has left, or a bound has changed: tenants that wait for one decide again."""
        short, self._short = self._short, set()
        for name in short & self._members.keys():
            self._members[name].bell.ring()
