"""`make proof ARGS="[PART…] [--scale X] [--seeds N] [--minutes M] [--seed N]"`: prints a line for
the ledger for each part. Without parts: all of them, in full.
"""

from __future__ import annotations

import argparse
import logging
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.proof import campaigns, others, soak
from tests.proof.ledger import Line, Plan

PARTS: Mapping[str, Callable[[Plan], Line]] = {
    "faults": campaigns.prove,
    "simulation": others.simulate,
    "histories": others.histories,
    "stateful": others.stateful,
    "mutants": others.mistakes,
    "soak": soak.prove,
}
HEAD = "| commit | date | part | what | violations |\n|---|---|---|---|---|"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--scale", type=float, default=10.0, help="times what a build does")
    parser.add_argument("--seeds", type=int, default=100_000, help="simulated clusters")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the soak")
    parser.add_argument("--jobs-a-second", type=float, default=380.0, help="of the soak")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="for histories")
    options = parser.parse_args(words)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    logging.basicConfig(level=logging.WARNING)
    plan = Plan(
        options.seed, options.scale, options.seeds, options.minutes, options.jobs_a_second,
        options.folder / f"musterd-proof-{options.seed}",
    )  # fmt: skip
    plan.folder.mkdir(parents=True)
    lines = [PARTS[part](plan) for part in (options.parts or PARTS)]
    print(HEAD)
    day = datetime.now(UTC).date().isoformat()
    for line in lines:
        print(f"| {commit()} | {day} | {line.part} | {line.what} | {line.violations} |")
    return 1 if any(line.violations for line in lines) else 0


def commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
