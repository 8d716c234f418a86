"""`python -m tests.neighbours [--seed N] [--rounds N] [--engine sqlite|postgresql]`: a campaign on
each engine, and its figures.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.neighbours.campaign import run
from tests.support.command import Home
from tests.support.postgres_server import PostgresServer

ENGINES = ("sqlite", "postgresql")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.neighbours", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--engine", choices=ENGINES)
    options = parser.parse_args(words)
    found = 0
    for engine in (options.engine,) if options.engine else ENGINES:
        found += not _campaign(engine, options.seed, options.rounds)
    return 1 if found else 0


def _campaign(engine: str, seed: int, rounds: int) -> bool:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="musterd-near-")))
        url = ""
        if engine == "postgresql":
            url = stack.enter_context(PostgresServer()).create_database("jobs")
        figures = run(Home(folder / "state", url), folder, seed, rounds)
    sys.stdout.write(f"{engine}, seed {seed}: {figures}\n")
    if figures.fault is not None:
        sys.stdout.write(f"{engine}: {figures.fault}\n")
    return figures.fault is None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
