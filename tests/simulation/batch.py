"""Many seeds, on several processes, and what all of them together must have met."""

from __future__ import annotations

import json
import multiprocessing
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from tests.simulation.plan import draw
from tests.simulation.running import Run, run, warm_up


@attrs.frozen
class Result:
    """Of one seed; small enough to be handed from process to process. `edges`: what its history
    went through, beside the faults.
    """

    seed: int
    violated: list[str]
    hash: str
    faults: dict[str, int]
    virtual_seconds: float
    cpu_seconds: float
    edges: dict[str, int]
    story: str = ""

    def as_json(self) -> str:
        fields: dict[str, Any] = attrs.asdict(self)
        del fields["edges"], fields["story"]
        return json.dumps(fields)


def result_of(seed: int) -> Result:
    try:
        return _result(run(draw(seed)))
    except Exception:  # noqa: BLE001 - of the simulation itself: the batch goes on and tells
        story = traceback.format_exc()
        return Result(seed, ["crash"], "", {}, 0.0, 0.0, {}, story)


def _result(done: Run) -> Result:
    stories = [one.story for one in done.findings]
    stories += [f"{one.invariant}: {one.story}" for one in done.judgement.violations[:3]]
    return Result(
        seed=done.scenario.seed,
        violated=done.violated,
        hash=done.hash,
        faults={what: count for what, count in sorted(done.counts.items()) if count},
        virtual_seconds=round(done.virtual_seconds, 3),
        cpu_seconds=round(done.cpu_seconds, 3),
        edges=dict(done.edges),
        story="\n".join(stories),
    )


def results(seeds: Iterable[int], jobs: int) -> Iterator[Result]:
    """In the order of the seeds."""
    if jobs <= 1:
        warm_up()
        yield from map(result_of, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, warm_up) as pool:
        yield from pool.imap(result_of, seeds, chunksize=4)


@attrs.define
class Tally:
    """What a batch has come to."""

    seeds: int = 0
    failed: list[Result] = attrs.field(factory=list[Result])
    hit: Counter[str] = attrs.field(factory=Counter[str])  # in so many seeds
    cpu_seconds: float = 0.0
    virtual_seconds: float = 0.0

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.cpu_seconds += result.cpu_seconds
        self.virtual_seconds += result.virtual_seconds
        self.hit.update([*result.faults, *result.edges])
        if result.violated:
            self.failed.append(result)
