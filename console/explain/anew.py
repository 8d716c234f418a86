"""Decides the observation of a journal row anew, with other settings, by the supervisor's own
functions. Pure.

A row holds what was seen and the two counts in force. It holds neither the line of jobs, by which
`latency` wishes, nor the other settings: of these, today's count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast, get_args

import attrs

from musterd.config.scaling import Mode
from musterd.manager.node.status import Decision
from musterd.manager.scaling.decision import (
    Memory,
    Others,
    Plan,
    ScalingPolicy,
    Situation,
    decide,
)
from musterd.manager.scaling.guard import GuardLimit, is_on
from musterd.manager.scaling.latency import WantedCrew

COUNTS = ("policy", "default_count", "max_count")  # of a policy, what a row holds
KEPT = (*COUNTS, "mode")  # and what it tells
LINE = "the line of jobs, by which `latency` wishes: `musterd simulate` works out past jobs anew"
SHARES = "the room of the other nodes, by which max_count divides the due jobs: the share stays"
COUNTED = "more due jobs than were counted then: it would be this many at least"
IMAGINED = "how large the crew was that a shadow imagines"
MACHINE = "what the guard saw of machine and store: it might have kept the crew smaller"
TENANTS = "how many workers other tenants would have left"


@attrs.frozen
class Anew:
    """`wanted`, `plan` None = the row does not hold enough. `lacks`: what it does not hold that may
    matter. `is_repeated`: with today's settings alone the same comes out as was decided then.
    """

    wanted: WantedCrew | None
    plan: Plan | None
    lacks: Sequence[str]
    is_repeated: bool


def history_seconds(policy: ScalingPolicy) -> float:
    """How far back earlier decisions count."""
    windows = (policy.stabilization_seconds, policy.up_cooldown_seconds)
    return 2 * max(*windows, policy.down_cooldown_seconds)


def in_force(today: ScalingPolicy, one: Decision) -> ScalingPolicy:
    """The settings of a decision as far as its row holds them, else today's."""
    known = {name: getattr(one, name) for name in COUNTS if getattr(one, name) is not None}
    allowance = one.desired if one.limited_by == "shared" else None
    mode: Mode = "hold" if one.limited_by == "hold" else "active"
    return attrs.evolve(today, **known, allowance=allowance, mode=mode)


def proposed(
    today: ScalingPolicy, proposal: ScalingPolicy, one: Decision, named: Collection[str]
) -> ScalingPolicy:
    """The proposal, with what the row holds in place of what it does not name."""
    then = in_force(today, one)
    kept = {name: getattr(then, name) for name in KEPT if name not in named}
    return attrs.evolve(proposal, **kept, allowance=then.allowance)


def decide_anew(
    history: Sequence[Decision], one: Decision, today: ScalingPolicy, policy: ScalingPolicy
) -> Anew:
    """`history`: the decisions of the same node before it, the oldest first."""
    then = in_force(today, one)
    again = _decided(history, one, then)
    is_repeated = again is not None and again.desired == one.desired
    wanted, plan = wish_anew(one, policy), _decided(history, one, policy)
    return Anew(wanted, plan, tuple(_lacks(one, then, policy, plan)), is_repeated)


def wish_anew(one: Decision, policy: ScalingPolicy) -> WantedCrew | None:
    """None = the row does not hold what this policy wishes by."""
    if one.due is None or one.share is None:
        return WantedCrew(None)
    if policy.policy == "depth":
        return WantedCrew(one.share, "depth")
    demand = one.share + one.busy
    if policy.policy == "demand":
        return WantedCrew(demand, "demand")
    if one.policy != "latency" or one.raw_wish is None:
        return None
    return WantedCrew(min(one.raw_wish, demand), slack_seconds=one.slack_seconds)


def _decided(history: Sequence[Decision], one: Decision, policy: ScalingPolicy) -> Plan | None:
    memory = Memory()
    for earlier in history:
        wanted = wish_anew(earlier, policy)
        if wanted is None:
            return None
        _, after = decide(_situation(earlier), memory, policy, earlier.at, wanted)
        memory = _as_it_was(memory, after, earlier)
    wanted = wish_anew(one, policy)
    if wanted is None:
        return None
    plan = decide(_situation(one), memory, policy, one.at, wanted)[0]
    return _guarded(one, plan) if is_on(policy.guard) else plan


def _as_it_was(memory: Memory, after: Memory, one: Decision) -> Memory:
    """The wishes are those of the other settings; the crew grew and shrank when it did."""
    changed = memory.changed(one.desired - one.size_before, one.at)
    return attrs.evolve(changed, wishes=after.wishes)


def _guarded(one: Decision, plan: Plan) -> Plan:
    """What the guard saw is not in the row; what it kept the crew to is."""
    if one.limited_by not in get_args(GuardLimit) or plan.desired <= one.desired:
        return plan
    return attrs.evolve(plan, desired=one.desired, limited_by=cast(GuardLimit, one.limited_by))


def _situation(one: Decision) -> Situation:
    others = Others(one.others_free or 0)
    return Situation(one.due, one.busy, one.size_before, others, room=one.room)


def _lacks(
    one: Decision, then: ScalingPolicy, policy: ScalingPolicy, plan: Plan | None
) -> list[str]:
    found: list[str] = []
    promises_differ = (then.promises, then.policy) != (policy.promises, policy.policy)
    if plan is None or (policy.policy == "latency" and promises_differ):
        found.append(LINE)
    if one.limited_by == "shadow":
        found.append(IMAGINED)
    if one.others_free and policy.max_count != then.max_count:
        found.append(SHARES)
    if plan is None:
        return found
    if is_on(policy.guard) and plan.desired > max(one.desired, one.size_before):
        found.append(MACHINE)
    if is_counted_out(one) and plan.desired == plan.raw_wish:
        found.append(COUNTED)
    if one.limited_by == "shared" and plan.limited_by == "shared":
        found.append(TENANTS)
    return found


def is_counted_out(one: Decision) -> bool:
    """Whether more jobs may have been due than were counted."""
    return not one.due_exact
