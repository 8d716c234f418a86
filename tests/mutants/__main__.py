"""`make mutants`: tries every mutant, seed after seed, until the simulation notices it. Exit 1 if
one survives, is noticed for a wrong reason, or by a seed that finds fault with the product itself.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.mutants.kept import Caught, keep, kept, median
from tests.mutants.mutant import Mutant, mutants
from tests.mutants.page import write_table
from tests.mutants.trying import Finding, NotRun, try_out

FIRST_SEED = 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--seeds-max", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", action="store_true", help="writes caught.toml and the page")
    asked = parser.parse_args(arguments)
    known = mutants()
    if unknown := set(asked.names) - known.keys():
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    wanted = [known[name] for name in asked.names] or list(known.values())
    caught: dict[str, Caught] = {}
    with ThreadPoolExecutor(asked.jobs) as pool:
        tries = pool.map(partial(_try, asked.seeds_max), wanted)
        for mutant, found in zip(wanted, tries, strict=True):
            _say(_row(mutant, found))
            if isinstance(found, Finding) and found.seed and found.catches(mutant):
                caught[mutant.name] = Caught(found.seed, tuple(sorted(found.violated)))
        suspicious = list(_control(caught, pool))
    if asked.keep:
        keep(kept() | caught, known)
        write_table(known, kept())
    for line in suspicious:
        _say(line)
    _say(_summary(wanted, caught))
    return 1 if suspicious or len(caught) < len(wanted) else 0


def _try(seeds_max: int, mutant: Mutant) -> Finding | NotRun:
    try:
        return try_out(mutant.edits, FIRST_SEED, seeds_max)
    except NotRun as error:
        return error


def _control(caught: Mapping[str, Caught], pool: ThreadPoolExecutor) -> Iterator[str]:
    """With these very seeds there must be nothing wrong with the product as it is."""
    seeds = sorted({one.seed for one in caught.values()})
    for seed, found in zip(seeds, pool.map(_without_mutant, seeds), strict=True):
        if found.violated:
            yield f"seed {seed} violates {', '.join(sorted(found.violated))} without any mutant"


def _without_mutant(seed: int) -> Finding:
    return try_out((), seed, 1)


def _row(mutant: Mutant, found: Finding | NotRun) -> str:
    if isinstance(found, NotRun):
        return f"{mutant.name:<36} NOT RUN: {found}"
    by, seconds = ", ".join(sorted(found.violated)), f"{found.seconds:.0f} s"
    if found.seed is None:
        how = f"SURVIVED {found.seeds} seeds"
    elif found.catches(mutant):
        how = f"seed {found.seed}"
    else:
        how = f"seed {found.seed}, NOT BY {', '.join(sorted(mutant.fires))}"
    return f"{mutant.name:<36} {how:<16} {by:<20} {seconds}"


def _summary(wanted: Sequence[Mutant], caught: Mapping[str, Caught]) -> str:
    told = f"{len(caught)} of {len(wanted)} mutants are noticed"
    return f"{told}; seeds needed: median {median(caught.values()):g}" if caught else told


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
