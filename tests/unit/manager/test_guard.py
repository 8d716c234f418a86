"""The guard: what it sees, and how far it lets a crew grow."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.load import load
from musterd.config.scaling import Guard
from musterd.console.doctor.judges import judge_guard
from musterd.manager.node.machine import read_machine
from musterd.manager.scaling.decision import Memory, Plan, Situation, decide
from musterd.manager.scaling.guard import MIB, Footprints, Machine, guarded, is_on, unseen
from tests.support.traces import SHIPPED

ALL = Guard(1_000, 10.0, 60.0, 50)
EASY = Machine(8_000 * MIB, 0.0, 0.0, 0.001)


@pytest.mark.parametrize(
    ("machine", "found"),
    [
        (EASY, (9, None)),
        (Machine(), (9, None)),
        (attrs.evolve(EASY, memory_pressure_percent=10.0), (9, None)),
        (attrs.evolve(EASY, memory_pressure_percent=10.1), (4, "machine_memory")),
        (attrs.evolve(EASY, cpu_pressure_percent=61.0), (4, "machine_cpu")),
        (attrs.evolve(EASY, claim_p99_seconds=0.051), (4, "store")),
        (attrs.evolve(EASY, free_memory_bytes=1_000 * MIB), (4, "machine_memory")),
        (attrs.evolve(EASY, worker_bytes=2_000 * MIB), (7, "machine_memory")),
        (attrs.evolve(EASY, worker_bytes=2_000 * MIB, young=2), (5, "machine_memory")),
        (attrs.evolve(EASY, worker_bytes=2_000 * MIB, young=9), (4, "machine_memory")),
        (attrs.evolve(EASY, worker_bytes=1_000 * MIB), (9, None)),
    ],
)
def test_a_crew_grows_as_far_as_the_machine_has_room(
    machine: Machine, found: tuple[int, str | None]
) -> None:
    assert guarded(4, 9, ALL, machine) == found
    assert guarded(4, 9, Guard(), machine) == (9, None)
    assert guarded(4, 2, ALL, machine) == (2, None), "it never dismisses, nor keeps anybody"


STUCK = Machine(0, 100.0, 100.0, 9.0)


def test_an_empty_crew_may_always_have_one_worker() -> None:
    assert guarded(0, 5, ALL, STUCK) == (1, "machine_memory")
    assert guarded(0, 1, ALL, STUCK) == (1, None)
    assert guarded(1, 5, ALL, STUCK) == (1, "machine_memory")


def test_it_is_the_last_word_of_a_decision() -> None:
    policy = attrs.evolve(SHIPPED, guard=ALL, max_count=6)
    seen = Situation(20, 3, 3, machine=STUCK)
    plan, memory = decide(seen, Memory(), policy, 0.0)
    assert plan == Plan(23, 3, "machine_memory")
    assert memory.grew_at == float("-inf"), "what did not happen starts no cooldown"
    assert decide(attrs.evolve(seen, machine=EASY), memory, policy, 1.0)[0] == Plan(23, 6, "max")


percent = st.none() | st.floats(0, 100)
machines = st.builds(
    Machine,
    st.none() | st.integers(0, 10**10), percent, percent, st.none() | st.floats(0, 10),
    st.integers(0, 10**10), st.integers(0, 50),
)  # fmt: skip
guards = st.builds(
    Guard,
    st.none() | st.integers(0, 10_000), percent, percent, st.none() | st.integers(0, 1_000),
)  # fmt: skip
counts = st.integers(0, 60)


@given(counts, counts, counts, guards, machines)
def test_it_only_ever_slows_growth(
    size: int, desired: int, more: int, guard: Guard, machine: Machine
) -> None:
    found, limit = guarded(size, desired, guard, machine)
    assert min(size, desired) <= found <= desired
    assert (limit is None) == (found == desired)
    assert guarded(size, desired + more, guard, machine)[0] >= found
    if not is_on(guard):
        assert found == desired


@pytest.mark.parametrize("better", ["free_memory_bytes", "worker_bytes", "young"])
@given(counts, counts, guards, machines, st.integers(0, 10**10))
def test_more_room_never_means_fewer_workers(
    better: str, size: int, desired: int, guard: Guard, machine: Machine, by: int
) -> None:
    value = getattr(machine, better)
    if value is None:
        return
    roomier = attrs.evolve(
        machine, **{better: value + by if better.startswith("free") else max(1, value - by)}
    )
    if better == "worker_bytes" and not value:
        return
    if better == "young" and not value:
        return
    assert guarded(size, desired, guard, roomier)[0] >= guarded(size, desired, guard, machine)[0]


def machine_files(root: Path, **texts: str) -> tuple[Path, Path]:
    proc, cgroups = root / "proc", root / "cgroup"
    for name, text in texts.items():
        file = root / name.replace("__", "/").replace("DOT", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    proc.mkdir(exist_ok=True)
    return proc, cgroups


PSI = "some avg10={} avg60=1.00 avg300=0.50 total=1\nfull avg10=9.00 avg60=0 avg300=0 total=1\n"


def test_it_reads_the_machine_and_its_control_groups(tmp_path: Path) -> None:
    where = machine_files(
        tmp_path,
        proc__meminfo="MemTotal: 9000 kB\nMemAvailable:    8000 kB\n",
        proc__pressure__memory=PSI.format("1.25"),
        proc__pressure__cpu=PSI.format("40.00"),
        proc__self__cgroup="4:memory:/x\n0::/system.slice/musterd.service\n",
        cgroup__cgroupDOTcontrollers="cpu memory\n",
        cgroup__systemDOTslice__memoryDOTmax="5000000\n",
        cgroup__systemDOTslice__memoryDOTcurrent="4000000\n",
        cgroup__systemDOTslice__memoryDOTstat="anon 1\ninactive_file 500000\n",
        cgroup__systemDOTslice__musterdDOTservice__memoryDOTmax="max\n",
        cgroup__systemDOTslice__musterdDOTservice__memoryDOTcurrent="4000000\n",
        cgroup__systemDOTslice__musterdDOTservice__cpuDOTpressure=PSI.format("77.50"),
    )
    assert read_machine(*where) == Machine(1_500_000, 1.25, 77.5)


def test_what_the_system_has_not_is_unknown_and_said_to_be(tmp_path: Path) -> None:
    machine = read_machine(*machine_files(tmp_path))
    assert machine == Machine()
    assert unseen(ALL, machine) == [
        "min_free_memory_mb", "memory_pressure_percent", "cpu_pressure_percent",
    ]  # fmt: skip
    assert unseen(Guard(claim_p99_ms=5), machine) == []
    settings = load(None, {}, ["scaling.guard.cpu_pressure_percent=50"], Path("none")).settings
    (finding,) = judge_guard(settings, machine)
    assert finding.level == "warn"
    assert "scaling.guard.cpu_pressure_percent" in finding.found
    (fine,) = judge_guard(settings, EASY)
    assert fine.level == "ok"


def test_this_machine_can_be_read() -> None:
    free = read_machine().free_memory_bytes
    assert free is not None
    assert free > MIB


def test_the_largest_child_of_all_kinds_counts() -> None:
    footprints = Footprints()
    assert footprints.largest_bytes == 0
    for kind, held in (("a", 5), ("b", 9), ("b", 3)):
        footprints.note(kind, held)
    assert footprints.largest_bytes == 9
