"""Promises that schedules cannot keep: their slots of a week are worked out as a trace. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import islice

import attrs

from musterd.catalog.kinds import Catalog, Deterministic, WorkKind
from musterd.config.schedules import Schedule, of_tenant
from musterd.config.settings import Settings
from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.simulation import simulate
from musterd.manager.scaling.model.trace import NONE, Trace
from musterd.manager.scaling.supervisor import policy_of
from musterd.store.words import duration_text, plural

SPAN = timedelta(days=7)
SLOTS_MAX = 5_000  # of all schedules together: a check takes a second at most
JUST_AFTER_SECONDS = 0.001  # a decision, which sees the slot only the next time
ROUNDING_SECONDS = 1e-6  # the first of slots that are equally late is told
Slot = tuple[datetime, str]  # and its kind


@attrs.frozen
class Unkept:
    """The job of a kind that would start latest. `workers`: how many would keep all promises; None
    = no number of workers does that are hired only once jobs are due.
    """

    kind: str
    slot: datetime
    late_seconds: float
    promised_seconds: float
    workers: int | None
    bound: str

    @property
    def words(self) -> str:
        said = (
            f"kinds.{self.kind} promises that jobs start within {self.promised_seconds:g} s: a job"
            f" scheduled for {self.slot:%Y-%m-%d %H:%M:%S}Z would be"
            f" {duration_text(self.late_seconds)} late"
        )
        if self.workers is None:
            return f"{said}; raise workers.default_count, or lower workers.scale_interval_ms"
        return f"{said}; it takes {plural(self.workers, 'worker')}, and {self.bound}"


def unkept_promises(
    settings: Settings, catalog: Catalog, wall_clock: Callable[[], float]
) -> Sequence[Unkept]:
    """One for each kind, as far as kinds say how long their jobs take."""
    now = datetime.fromtimestamp(wall_clock(), UTC)
    schedules = of_tenant(settings.schedules, settings.tenant)
    slots = list(islice(_slots(schedules.values(), catalog, now), SLOTS_MAX))
    if not slots:
        return []
    policy = policy_of(settings, catalog)
    interval_seconds = settings.workers.scale_interval_ms / 1000
    model = ModelSettings(policy, interval_seconds, settings.scaling.hours)
    trace = _trace(slots, catalog, now)
    worst = _worst(trace, model)
    if not worst:
        return []
    most, workers = policy.max_running or policy.max_count, _workers(trace, model)
    key = "workers.max_count" if most >= policy.max_count else "limits.max_running"
    bound = f"{key} is {min(most, policy.max_count)}"
    return [
        Unkept(kind, slots[entry][0], late, policy.promises.of(kind), workers, bound)
        for kind, (late, entry) in sorted(worst.items())
    ]


def _slots(schedules: Iterable[Schedule], catalog: Catalog, now: datetime) -> Iterator[Slot]:
    """Of all schedules whose kinds say how long they take, in order."""
    known = [
        one
        for one in schedules
        if one.enabled and one.kind in catalog and _seconds(catalog[one.kind]) is not None
    ]
    return merge(*(_slots_of(one, now) for one in known))


def _slots_of(schedule: Schedule, now: datetime) -> Iterator[Slot]:
    slot = schedule.rhythm.next_after(now)
    while slot is not None and slot < now + SPAN:
        yield slot, schedule.kind
        slot = schedule.rhythm.next_after(slot)


def _seconds(kind: WorkKind) -> float | None:
    """The longest that a job is said to take; None = the kind does not say."""
    whole_ms = 0
    for part in kind.parts:
        if not isinstance(part.behaviour, Deterministic):
            return None
        whole_ms += part.behaviour.duration_ms_max
    return whole_ms / 1000


def _trace(slots: Sequence[Slot], catalog: Catalog, now: datetime) -> Trace:
    begun = now.replace(microsecond=0)
    due = [(slot - begun).total_seconds() + JUST_AFTER_SECONDS for slot, _ in slots]
    runs = [_seconds(catalog[kind]) or 0.0 for _, kind in slots]
    many = len(slots)
    kinds = [kind for _, kind in slots]
    return Trace(
        begun.astimezone(UTC), due[-1], due, runs, due, [NONE] * many, runs, range(many), kinds
    )


def _worst(trace: Trace, model: ModelSettings) -> dict[str, tuple[float, int]]:
    """How late the latest job of each kind is, and its entry; of kinds that break a promise."""
    promises, found = model.policy.promises, dict[str, tuple[float, int]]()
    for entry, (kind, waited) in enumerate(
        zip(trace.kinds, simulate(trace, model).waits, strict=True)
    ):
        promised = promises.of(kind)
        late = waited - promised
        if promised and late > found.get(kind, (0.0, 0))[0] + ROUNDING_SECONDS:
            found[kind] = (late, entry)
    return found


def _workers(trace: Trace, model: ModelSettings) -> int | None:
    """The smallest `max_count` that keeps all promises."""

    def keeps(most: int) -> bool:
        policy = attrs.evolve(
            model.policy,
            max_count=most,
            default_count=min(model.policy.default_count, most),
            max_running=None,
        )
        return not _worst(trace, attrs.evolve(model, policy=policy, hours=()))

    low, high = 1, trace.most_wanted
    if not keeps(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle + 1, high)
    return low
