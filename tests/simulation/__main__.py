"""Runs simulated clusters: many seeds, or one again."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.batch import Tally, results
from tests.simulation.covering import report, watching
from tests.simulation.plan import draw
from tests.simulation.running import run
from tests.simulation.showing import small, story, summary, told
from tests.simulation.shrinking import numbers_of, shrink, without
from tests.simulation.sometimes import SEEDS_MIN, never

HOLDS, VIOLATED = 0, 1  # and 2 for a command line that nobody understands
SHRINK_SECONDS = 120.0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seeds", type=_span, metavar="FIRST:COUNT")
    which.add_argument("--seed", type=int, metavar="SEED", help="one, once more")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--stop-at-first", action="store_true", help="end with the first violation")
    parser.add_argument("--json", action="store_true", help="one object a line for each seed")
    parser.add_argument("--history", type=Path, metavar="FILE", help="write its history there")
    parser.add_argument(
        "--covered", action="store_true", help="lists lines of the product that no seed reaches"
    )
    parser.add_argument(
        "--without", type=numbers_of, default=frozenset[int](), metavar="NUMBERS",
        help="leave these deeds out, as 0-4,7",
    )  # fmt: skip
    parser.add_argument("--shrink", action="store_true", help="leave out what it does not need")
    options = parser.parse_args(arguments)
    is_for_one = bool(options.history or options.shrink or options.without)
    if options.seeds is not None and is_for_one:
        parser.error("--history, --shrink and --without are for one --seed")
    if options.covered and options.seeds is None:
        parser.error("--covered is for --seeds")
    if options.seeds is not None:
        return watched(options) if options.covered else many(options)
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


def watched(options: argparse.Namespace) -> int:
    """In this process, and several times as slow."""
    options.jobs = 1
    with watching() as covered:
        code = many(options)
    for line in report(covered):
        sys.stdout.write(f"{line}\n")
    return code


def one(options: argparse.Namespace) -> int:
    done = run(without(draw(options.seed), options.without))
    if options.history is not None:
        options.history.write_text("\n".join(done.lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{story(done)}\n")
    if options.shrink and done.violated:
        sys.stdout.write(f"{small(shrink(done, SHRINK_SECONDS))}\n")
    return VIOLATED if done.violated else HOLDS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
