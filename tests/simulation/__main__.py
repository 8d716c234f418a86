"""Runs simulated clusters: many seeds, or one again."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.batch import REPLAY, Result, Tally, results
from tests.simulation.plan import draw
from tests.simulation.running import Run, run
from tests.simulation.sometimes import SEEDS_MIN, WANTED, never

HOLDS, VIOLATED, USAGE = 0, 1, 2
SHOWN_MAX = 3
LINE_MAX = 240


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seeds", type=_span, metavar="FIRST:COUNT")
    which.add_argument("--seed", type=int, metavar="SEED", help="one, once more")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--stop-at-first", action="store_true", help="end with the first violation")
    parser.add_argument("--json", action="store_true", help="one object a line for each seed")
    parser.add_argument("--history", type=Path, metavar="FILE", help="write its history there")
    parser.add_argument("--shrink", action="store_true", help="leave out what it does not need")
    options = parser.parse_args(arguments)
    if options.seeds is not None:
        if options.history or options.shrink:
            parser.error("--history and --shrink are for one --seed")
        return many(options)
    return one(options)


def _span(text: str) -> range:
    first, _, count = text.partition(":")
    try:
        span = range(int(first), int(first) + int(count or 1))
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted FIRST:COUNT") from None
    if not span:
        raise argparse.ArgumentTypeError("COUNT must be 1 or more")
    return span


def many(options: argparse.Namespace) -> int:
    tally = Tally()
    for result in results(options.seeds, min(options.jobs, len(options.seeds))):
        tally.add(result)
        if options.json:
            sys.stdout.write(f"{result.as_json()}\n")
            sys.stdout.flush()
        elif result.violated:
            sys.stdout.write(f"{told(result)}\n")
            sys.stdout.flush()
        if result.violated and options.stop_at_first:
            break
    missing = never(tally.hit) if tally.seeds >= SEEDS_MIN else []
    where = sys.stderr if options.json else sys.stdout
    where.write(f"{summary(tally, missing)}\n")
    return VIOLATED if tally.failed or missing else HOLDS


def told(result: Result) -> str:
    ids = " ".join(result.violated)
    return f"seed {result.seed}: {ids}\n{result.story}\n  {REPLAY.format(seed=result.seed)}"


def summary(tally: Tally, missing: Sequence[str]) -> str:
    each = tally.cpu_seconds / max(1, tally.seeds)
    rows = [
        f"{tally.seeds} seeds, {len(tally.failed)} violated; {each:.2f} processor seconds and "
        f"{tally.virtual_seconds / max(1, tally.seeds):.0f} virtual ones each",
        f"met: {sum(1 for one in WANTED if tally.hit.get(one))} of {len(WANTED)} faults and steps",
    ]
    rows += [f"never met: {one}" for one in missing]
    return "\n".join(rows)


def one(options: argparse.Namespace) -> int:
    done = run(draw(options.seed))
    if options.history is not None:
        options.history.write_text("\n".join(done.lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{story(done)}\n")
    return VIOLATED if done.violated else HOLDS


def story(done: Run) -> str:
    rows = [
        f"seed {done.scenario.seed}: {' '.join(done.violated) or 'all hold'}",
        f"hash {done.hash}, {len(done.lines)} lines, {done.virtual_seconds:.1f} virtual seconds",
        f"faults: {dict(sorted(done.counts.items()))}",
    ]
    for finding in done.findings:
        rows += ["", f"{finding.what}: {finding.story}"]
    for violation in done.judgement.violations[:SHOWN_MAX]:
        rows += ["", f"{violation.invariant}: {violation.story}"]
        rows += [f"  {line}: {done.lines[line - 1][:LINE_MAX]}" for line in violation.lines]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
