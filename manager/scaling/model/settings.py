"""What a simulation knows of the settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.scaling import Hours
from musterd.config.schedules import Schedule, of_tenant
from musterd.config.settings import Settings
from musterd.manager.scaling.decision import ScalingPolicy
from musterd.manager.scaling.model.line import NO_CAPS, RunLimits
from musterd.manager.scaling.supervisor import policy_of

NO_SCHEDULES: Mapping[str, Schedule] = {}


@attrs.frozen
class ModelSettings:
    """The supervisor's policy, how often it decides, when it has other bounds, and what else limits
    jobs: on each of so many nodes.
    """

    policy: ScalingPolicy
    interval_seconds: float
    hours: tuple[Hours, ...] = ()
    caps: Mapping[str, int] = NO_CAPS  # `max_running` of kinds
    schedules: Mapping[str, Schedule] = NO_SCHEDULES
    nodes: int = 1

    @property
    def rest_size(self) -> int:
        """All crews together when there is nothing to do, outside all hours."""
        return self.nodes * rest_size(self.policy)

    @property
    def limits(self) -> RunLimits:
        return RunLimits(self.caps, self.policy.max_running)


def rest_size(policy: ScalingPolicy) -> int:
    """The crew at the start and when there is nothing to do."""
    return min(policy.default_count, policy.bound)


def model_settings(settings: Settings, catalog: Catalog, nodes: int = 1) -> ModelSettings:
    """Made by the daemon's own functions."""
    return ModelSettings(
        policy_of(settings, catalog),
        settings.workers.scale_interval_ms / 1000,
        settings.scaling.hours,
        {name: most for name, kind in catalog.items() if (most := kind.max_running) is not None},
        of_tenant(settings.schedules, settings.tenant),
        nodes,
    )
