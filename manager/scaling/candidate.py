"""Crews that are decided on and never hired: that of `[scaling.candidate]`, and in shadow that of
the policy itself. Pure.

Each sees what the crew in force leaves in the queue, and remembers for itself how large it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from musterd.config.scaling import COUNTS, NO_CANDIDATE, given
from musterd.config.settings import Settings
from musterd.manager.scaling.decision import (
    Memory,
    Plan,
    ScalingPolicy,
    Situation,
    decide,
    wish_of,
    within_bounds,
)
from musterd.manager.scaling.latency import WantedCrew


def candidate_of(settings: Settings) -> Settings | None:
    """The settings with the candidate's keys in force; None = there is no candidate."""
    if settings.scaling.candidate == NO_CANDIDATE:
        return None
    keys = given(settings.scaling.candidate)
    counts = {name: keys.pop(name) for name in COUNTS if name in keys}
    return attrs.evolve(
        settings,
        workers=attrs.evolve(settings.workers, **counts),
        scaling=attrs.evolve(settings.scaling, **keys, mode="active", candidate=NO_CANDIDATE),
    )


@attrs.frozen
class ImaginedCrew:
    """A crew of `size`, if it had been hired."""

    size: int
    memory: Memory = attrs.field(factory=Memory)

    def decide(
        self,
        seen: Situation,
        policy: ScalingPolicy,
        now: float,
        wanted: WantedCrew | None = None,
    ) -> tuple[Plan, ImaginedCrew]:
        """As the crew in force decides, if it had this size."""
        own = attrs.evolve(seen, size=self.size)
        plan, memory = decide(own, self.memory, policy, now, wanted)
        return plan, ImaginedCrew(plan.desired, memory)


def shadowed(plan: Plan, size: int, policy: ScalingPolicy) -> tuple[Plan, int]:
    """A decision that does not act: as it is told, and the size that the crew has instead."""
    kept, _ = within_bounds(size, policy)
    return (plan if plan.desired == kept else attrs.evolve(plan, limited_by="shadow")), kept


def journal_object(plan: Plan, wanted: WantedCrew) -> Mapping[str, object]:
    """The candidate in the journal."""
    return {
        "desired": plan.desired,
        "limited_by": plan.limited_by,
        "raw_wish": plan.raw_wish,
        "because": wanted.because,
    }


def decided_beside(
    seen: Situation, policy: ScalingPolicy, crew: ImaginedCrew | None, now: float
) -> tuple[Mapping[str, object], ImaginedCrew]:
    """A candidate that is new begins with the crew that is there."""
    wanted = wish_of(seen, policy)
    plan, after = (crew or ImaginedCrew(seen.size)).decide(seen, policy, now, wanted)
    return journal_object(plan, wanted), after
