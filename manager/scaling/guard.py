"""What keeps a crew from growing although there is work: a machine or a store at its limits. Pure,
but for `Footprints`, which is told what children hold.

The guard stops hiring and never dismisses. A crew without workers may always have one, so that the
queue does not stand still because of others on the machine.
"""

from __future__ import annotations

from typing import Literal

import attrs

from musterd.config.scaling import Guard

GuardLimit = Literal["machine_memory", "machine_cpu", "store"]
MIB = 1_048_576
YOUNG_SECONDS = 10.0  # by then a new worker's child holds what it will hold


@attrs.frozen
class Machine:
    """What the guard sees; None = it cannot be measured here, or nothing has been yet.

    `worker_bytes`: the most that a child held after a job. `young`: workers that were hired so
    lately that what they will hold still counts as free.
    """

    free_memory_bytes: int | None = None
    memory_pressure_percent: float | None = None
    cpu_pressure_percent: float | None = None
    claim_p99_seconds: float | None = None
    worker_bytes: int = 0
    young: int = 0


def is_on(guard: Guard) -> bool:
    return any(attrs.astuple(guard))


def unseen(guard: Guard, machine: Machine) -> list[str]:
    """The keys that are set, and cannot be measured on this machine."""
    seen = {
        "min_free_memory_mb": machine.free_memory_bytes,
        "memory_pressure_percent": machine.memory_pressure_percent,
        "cpu_pressure_percent": machine.cpu_pressure_percent,
    }
    return [name for name, value in seen.items() if getattr(guard, name) and value is None]


def guarded(
    size: int, desired: int, guard: Guard, machine: Machine
) -> tuple[int, GuardLimit | None]:
    """How far a crew of `size` may grow, and what keeps it from `desired`."""
    if desired <= size:
        return desired, None
    hires, limit = _hires(guard, machine)
    most = desired if hires is None else max(size + hires, 1)
    return (desired, None) if most >= desired else (most, limit)


def _hires(guard: Guard, machine: Machine) -> tuple[int | None, GuardLimit | None]:
    """How many more workers there may be; None = any number."""
    if _is_above(machine.memory_pressure_percent, guard.memory_pressure_percent):
        return 0, "machine_memory"
    if _is_above(machine.cpu_pressure_percent, guard.cpu_pressure_percent):
        return 0, "machine_cpu"
    if _is_above(machine.claim_p99_seconds, (guard.claim_p99_ms or 0) / 1000):
        return 0, "store"
    if not guard.min_free_memory_mb or machine.free_memory_bytes is None:
        return None, None
    spare_bytes = machine.free_memory_bytes - guard.min_free_memory_mb * MIB
    if spare_bytes <= 0:
        return 0, "machine_memory"
    if not machine.worker_bytes:
        return None, None
    return max(0, spare_bytes // machine.worker_bytes - machine.young), "machine_memory"


def _is_above(seen: float | None, bound: float | None) -> bool:
    return bool(bound) and seen is not None and seen > (bound or 0.0)


@attrs.define(eq=False)
class Footprints:
    """How much memory children of each kind held at most after a job."""

    _held_bytes: dict[str, int] = attrs.field(factory=dict[str, int], init=False)

    def note(self, kind: str, held_bytes: int) -> None:
        self._held_bytes[kind] = max(held_bytes, self._held_bytes.get(kind, 0))

    @property
    def largest_bytes(self) -> int:
        """0 = no child has ended a job."""
        return max(self._held_bytes.values(), default=0)
