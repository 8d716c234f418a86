"""Bounds by the clock: which `[[scaling.hours]]` are in force, and what they make of a crew's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from math import inf

import attrs

from musterd.config.cron import read_cron, read_zone
from musterd.config.scaling import Hours
from musterd.manager.scaling.decision import ScalingPolicy

WINDOWS_MAX = 1_000  # remembered; more have never been configured


@attrs.frozen
class Window:
    """Whether hours are in force from a moment on, and until when it stays so. In seconds since
    the epoch; `inf` = for ever.
    """

    in_force: bool
    since: float
    until: float


def window_at(hours: Hours, now: float) -> Window:
    """Where windows of the same hours overlap, this is seen when the first of them ends."""
    moment, lasts = datetime.fromtimestamp(now, UTC), timedelta(minutes=hours.for_minutes)
    slot = read_cron(hours.from_, read_zone(hours.timezone)).next_after(moment - lasts)
    if slot is None:
        return Window(False, now, inf)
    if slot > moment:
        return Window(False, now, slot.timestamp())
    return Window(True, now, (slot + lasts).timestamp())


@attrs.define(eq=False)
class HoursClock:
    """Works out a window once, and again when it is over or the clock has been put back."""

    _windows: dict[Hours, Window] = attrs.field(factory=dict[Hours, Window], init=False)

    def in_force(self, all_hours: Iterable[Hours], now: float) -> Sequence[Hours]:
        return [one for one in all_hours if self._window(one, now).in_force]

    def next_change(self, all_hours: Iterable[Hours], now: float) -> float:
        """When that may change; `inf` = never."""
        return min((self._window(one, now).until for one in all_hours), default=inf)

    def _window(self, hours: Hours, now: float) -> Window:
        found = self._windows.get(hours)
        if found is None or not found.since <= now < found.until:
            if len(self._windows) >= WINDOWS_MAX:
                self._windows.clear()
            found = self._windows[hours] = window_at(hours, now)
        return found


def with_hours(policy: ScalingPolicy, in_force: Iterable[Hours]) -> ScalingPolicy:
    """The largest floor and the smallest ceiling of those in force. No ceiling is above
    `max_count`, which protects the machine.
    """
    for one in in_force:
        floor, ceiling = one.default_count, one.max_count
        if floor is not None and (policy.floor_by is None or floor > policy.default_count):
            policy = attrs.evolve(policy, default_count=floor, floor_by=one.name)
        if ceiling is not None and ceiling < policy.max_count:
            policy = attrs.evolve(policy, max_count=ceiling, ceiling_by=one.name)
    return policy
