"""An hour under load, with faults at random: memory, files, connections and tables stay as they
are; visits to the store stay quick, and work goes on, while somebody holds an old snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random

import attrs
import psycopg

from tests.faults.campaign import deeds_on, done
from tests.faults.ground import laid
from tests.faults.judging import Judged, judged
from tests.faults.scene import Scene, opened
from tests.faults.server_faults import held_snapshot
from tests.faults.sizes import Mix, Sizes
from tests.proof.ledger import Line, Plan
from tests.proof.readings import Reading, Readings, jobs_a_second, slope_a_hour, visit_p99_ms

FAULTS = (
    *("kill", "kill", "freeze", "leave", "cut_reply", "cut_request", "half_open"),
    *("executor_kill", "bouncer_restart", "terminate", "backend_kill", "postmaster_kill"),
    *("connections", "disk_full"),
)
PAUSE_SECONDS = (5.0, 20.0)  # between two faults
WARM_SHARE = 0.2  # of the time, in which memory may still grow
HELD_SHARE = 0.15  # of the time, in which a snapshot is held; faults rest then, and as long before
MEMORY_MB_AN_HOUR_MAX = 10.0
JUDGED_MINUTES = 30.0  # a slope of less says nothing
SLOWER_MAX = 3.0  # times, under a held snapshot
TABLE_GROWTH_MAX = 1.5  # from one half to the other, before the snapshot and after it


@attrs.frozen
class Phases:
    """Readings of all of it, and of two quiet times: before a snapshot is held, and under it."""

    whole: Sequence[Reading]
    before: Sequence[Reading]
    under: Sequence[Reading]


def prove(plan: Plan) -> Line:
    mix = Mix(
        jobs_a_second=plan.jobs_a_second, kinds=("beside",) * 9 + ("work",),
        milliseconds=(0, 30), slow_share=0.001, crowd=3000, targets=200, batch=16,
    )  # fmt: skip
    sizes = Sizes({}, mix, workers_max=12, memory_mb=2048, keep_seconds=90.0)
    folder = plan.folder / "soak"
    folder.mkdir()
    began, seconds = time.monotonic(), plan.minutes * 60
    with (
        laid(sizes.nodes, sizes.memory_mb) as ground,
        opened(folder, plan.seed, sizes, ground) as scene,
    ):
        elder = scene.fleet.nodes[0]
        scene.spared = frozenset({elder.name})
        with Readings(elder, ground.url) as readings:
            phases = soak(scene, readings, Random(f"{plan.seed} soak"), seconds)
        scene.recorder.fault("heal")
        return line(plan, judged(scene, plan.seed, began), phases)


def soak(scene: Scene, readings: Readings, rng: Random, seconds: float) -> Phases:
    began, held = time.monotonic(), seconds * HELD_SHARE
    befall(scene, rng, began + seconds / 2 - held)
    first = len(readings.all)
    time.sleep(held)
    second = len(readings.all)
    with psycopg.connect(scene.ground.url, autocommit=True) as session, held_snapshot(session):
        scene.recorder.fault("snapshot")
        time.sleep(held)
    scene.recorder.fault("snapshot_over")
    scene.notebook.tally["snapshot"] += 1
    third = len(readings.all)
    befall(scene, rng, began + seconds)
    found = readings.all
    return Phases(list(found), found[first:second], found[second:third])


def befall(scene: Scene, rng: Random, until: float) -> None:
    deeds = deeds_on(scene)
    while time.monotonic() < until:
        time.sleep(rng.uniform(*PAUSE_SECONDS))
        name = rng.choice(FAULTS)
        if done(name, deeds[name], rng):
            scene.notebook.tally[name] += 1


def line(plan: Plan, found: Judged, phases: Phases) -> Line:
    complaints = [*found.complaints, *wrong(plan, phases)]
    for complaint in complaints:
        print(complaint, flush=True)
    if complaints:
        print(found.how_to_judge_again, flush=True)
    faults = sum(found.tally.values())
    first = f"{plan.minutes:g} min, {found.asked:,} jobs, {faults} faults"
    return Line("soak", f"{first}; {told(phases)}", len(complaints))


def told(phases: Phases) -> str:
    whole = phases.whole
    warm = whole[int(len(whole) * WARM_SHARE) :]
    files, connections = [one.files for one in warm], [one.connections for one in warm]
    before, under = visit_p99_ms(phases.before), visit_p99_ms(phases.under)
    return (
        f"memory {slope_a_hour(warm):+.1f} MB/h at {warm[-1].resident_mb:.0f} MB; "
        f"files {min(files)} to {max(files)}; connections {min(connections)} to "
        f"{max(connections)}; table at most {max(one.table_mb for one in whole):.0f} MB with "
        f"{max(one.rows for one in whole):,} rows; visit p99 {milliseconds(before)}, under a held "
        f"snapshot {milliseconds(under)}; {jobs_a_second(phases.before) or 0:.0f} jobs/s on one "
        f"node, under it {jobs_a_second(phases.under) or 0:.0f}"
    )


def milliseconds(found: float | None) -> str:
    return "unknown" if found is None else f"{found:.0f} ms"


def wrong(plan: Plan, phases: Phases) -> list[str]:
    whole = phases.whole
    warm = whole[int(len(whole) * WARM_SHARE) :]
    found: list[str] = []
    before, under = visit_p99_ms(phases.before), visit_p99_ms(phases.under)
    if before is None or under is None or under > SLOWER_MAX * before:
        found.append(f"visits: {told(phases)}")
    if SLOWER_MAX * (jobs_a_second(phases.under) or 0.0) < (jobs_a_second(phases.before) or 0.0):
        found.append(f"work: {told(phases)}")
    if plan.minutes < JUDGED_MINUTES:
        return found
    if slope_a_hour(warm) > MEMORY_MB_AN_HOUR_MAX:
        found.append(f"memory grows: {told(phases)}")
    for early, late in table_sizes_mb(phases, warm):
        if late > TABLE_GROWTH_MAX * early:
            found.append(f"the table grows: {early:.0f} MB, then {late:.0f} MB")
    quarter = len(whole) // 4
    if max(one.files for one in whole[-quarter:]) > 2 * max(one.files for one in whole[:quarter]):
        found.append(f"open files grow: {told(phases)}")
    return found


def table_sizes_mb(phases: Phases, warm: Sequence[Reading]) -> list[tuple[float, float]]:
    """At most in the first and in the second half of the time before the snapshot, and of that
    after it. While it is held nothing can be removed, and files do not shrink.
    """
    begin, end = phases.under[0].at, phases.under[-1].at
    parts = [one for one in warm if one.at < begin], [one for one in warm if one.at > end]
    return [
        (max(one.table_mb for one in part[:half]), max(one.table_mb for one in part[half:]))
        for part in parts
        if (half := len(part) // 2)
    ]
