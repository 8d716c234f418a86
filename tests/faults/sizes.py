"""How many of which fault: the one place that says so."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

# What befalls nodes, lines and the server goes on beside each other; within a row one at a time.
NODE_KILLS = ("kill",)
NODE_FREEZES = ("freeze", "leave")
LINES = ("cut_reply", "cut_request", "half_open", "executor_kill", "bouncer_restart")
SERVER = (
    "postmaster_kill",
    "backend_kill",
    "terminate",
    "connections",
    "snapshot",
    "disk_full",
)
TRACKS = (NODE_KILLS, NODE_FREEZES, LINES, SERVER)

# A campaign of `make prove`.
CAMPAIGN: Mapping[str, int] = MappingProxyType(
    {
        "kill": 50,
        "freeze": 20,
        "leave": 4,
        "cut_reply": 12,
        "cut_request": 10,
        "half_open": 4,
        "executor_kill": 6,
        "bouncer_restart": 4,
        "postmaster_kill": 20,
        "backend_kill": 4,
        "terminate": 10,
        "connections": 2,
        "snapshot": 2,
        "disk_full": 2,
    }
)


@attrs.frozen
class Mix:
    """What clients ask for. `crowd`: while more jobs have not ended, nobody asks for another.
    `batch`: jobs in one request, always; 1 = mostly one.
    """

    jobs_a_second: float = 30.0
    kinds: tuple[str, ...] = ("work", "work", "work", "beside", "beside", "capped")
    milliseconds: tuple[int, ...] = (0, 30, 60, 150, 400)
    slow_share: float = 0.02  # of jobs that take three seconds
    controls_a_second: float = 4.0
    crowd: int = 200
    targets: int = 8  # each of them does a few jobs a second, retries included
    batch: int = 1


@attrs.frozen
class Sizes:
    """Of one campaign. `faults`: how many of each have to have happened."""

    faults: Mapping[str, int] = CAMPAIGN
    mix: Mix = Mix()
    nodes: int = 3
    workers_max: int = 6
    lease_seconds: float = 4.0
    margin_seconds: float = 1.0
    memory_mb: int = 256  # of the disk that is filled up
    keep_seconds: float = 0.0  # from a job's end until it is deleted; 0 = never

    def scaled(self, factor: float) -> Sizes:
        """At least one of each kind."""
        faults = {name: max(1, round(count * factor)) for name, count in self.faults.items()}
        return attrs.evolve(self, faults=faults)

    def only(self, names: frozenset[str]) -> Sizes:
        faults = {name: count for name, count in self.faults.items() if name in names}
        return attrs.evolve(self, faults=faults)
