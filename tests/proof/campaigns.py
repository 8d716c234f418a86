"""One campaign of real faults after the other, each from a seed of its own."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults import campaign, failover
from tests.faults.judging import Judged
from tests.faults.sizes import Sizes
from tests.proof.ledger import Line, Plan

Run = Callable[[Path, int], Judged]


def prove(plan: Plan) -> Line:
    tally, jobs, complaints, seconds = Counter[str](), 0, 0, 0.0
    for number, run in enumerate(runs(plan.scale)):
        folder = plan.folder / f"campaign-{number}"
        folder.mkdir()
        found = run(folder, plan.seed + number)
        tally += found.tally
        jobs, seconds = jobs + found.jobs, seconds + found.seconds
        complaints += len(found.complaints)
        tell(found)
        if not found.complaints:
            shutil.rmtree(folder)
    return Line("faults", f"{summary(tally)}; {jobs:,} jobs; {seconds:,.0f} s", complaints)


def runs(scale: float) -> Iterator[Run]:
    """As many whole campaigns as the scale says, a smaller one for the rest; with two failovers."""
    while scale > 0:
        sizes = Sizes().scaled(min(1.0, scale))

        def whole(folder: Path, seed: int, sizes: Sizes = sizes) -> Judged:
            return campaign.run(folder, seed, sizes)

        def clean(folder: Path, seed: int) -> Judged:
            return failover.run(folder, seed, Sizes(), lossy=False)

        def lossy(folder: Path, seed: int) -> Judged:
            return failover.run(folder, seed, Sizes(), lossy=True)

        yield from (whole, clean, lossy)
        scale -= 1


def tell(found: Judged) -> None:
    for line in (*found.lines, *found.complaints):
        print(line, flush=True)
    if found.complaints:
        print(found.how_to_judge_again, flush=True)


def summary(tally: Counter[str]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(tally.items()))
