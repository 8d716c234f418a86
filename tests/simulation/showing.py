"""What people read of a run."""

from __future__ import annotations

from collections.abc import Sequence

from tests.simulation.batch import Result, Tally
from tests.simulation.plan import Scenario
from tests.simulation.running import Run
from tests.simulation.shrinking import Shrunk, numbers_text, relevant
from tests.simulation.sometimes import WANTED

SHOWN_MAX = 3
LINE_MAX = 240
REPLAY = "python -m tests.simulation --seed {seed}"


def told(result: Result) -> str:
    ids, replay = " ".join(result.violated), REPLAY.format(seed=result.seed)
    return f"seed {result.seed}: {ids}\n{result.story}\n  {replay} --shrink"


def summary(tally: Tally, missing: Sequence[str]) -> str:
    seeds = max(1, tally.seeds)
    met = sum(1 for one in WANTED if tally.hit.get(one))
    cpu, virtual = tally.cpu_seconds / seeds, tally.virtual_seconds / seeds
    rows = [
        f"{tally.seeds} seeds, {len(tally.failed)} violated",
        f"{cpu:.2f} processor seconds and {virtual:.0f} virtual ones each",
        f"met {met} of {len(WANTED)} faults and steps",
    ]
    rows += [f"never met: {one}" for one in missing]
    return "\n".join(rows)


def story(done: Run) -> str:
    rows = [
        f"seed {done.scenario.seed}: {' '.join(done.violated) or 'all hold'}",
        f"hash {done.hash}, {len(done.lines)} lines, {done.virtual_seconds:.1f} virtual seconds",
        f"{done.cpu_seconds:.2f} processor seconds",
        f"faults: {dict(sorted(done.counts.items()))}",
    ]
    for finding in done.findings:
        rows += ["", f"{finding.what}: {finding.story}"]
    for violation in done.judgement.violations[:SHOWN_MAX]:
        rows += ["", f"{violation.invariant}: {violation.story}"]
        rows += _shown(done.lines, violation.lines)
    return "\n".join(rows)


def _shown(lines: Sequence[str], numbers: Sequence[int]) -> list[str]:
    return [f"  {number}: {lines[number - 1][:LINE_MAX]}" for number in numbers]


def small(shrunk: Shrunk) -> str:
    """What is left of a scenario, and the part of its history that the violation is about."""
    done = shrunk.run
    left_out = numbers_text(shrunk.left_out)
    replay = REPLAY.format(seed=done.scenario.seed)
    rows = ["", f"after {shrunk.tries} runs this is left:", *deeds_of(done.scenario)]
    rows += ["", f"  {replay} --without {left_out}", "", story(done)]
    for violation in done.judgement.violations[:1]:
        numbers = relevant(done.lines, violation)
        rows += ["", f"what {violation.invariant} is about:", *_shown(done.lines, numbers)]
    return "\n".join(rows)


def deeds_of(scenario: Scenario) -> list[str]:
    return [
        f"  {deed.at:9.3f} {deed.what} {dict(deed.values)}"[:LINE_MAX] for deed in scenario.deeds
    ]
