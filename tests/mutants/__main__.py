"""`make mutants`: tries every mutant, with seed after seed of the simulation, or with the tests
that should notice it. Exit 1 if one survives, is noticed for a wrong reason, or by a seed or a test
that finds fault with the product itself.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.mutants.kept import Caught, keep, keep_tests, kept, kept_tests, median
from tests.mutants.mutant import Mutant, for_simulation, for_tests, mutants
from tests.mutants.page import shown, write_tables
from tests.mutants.sampling import SAMPLE_SEEDS, sample
from tests.mutants.scoring import score
from tests.mutants.testing import Noticed, try_tests
from tests.mutants.trying import Finding, NotRun, try_out

FIRST_SEED = 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--seeds-max", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", action="store_true", help="writes what caught them, and the page")
    by = parser.add_mutually_exclusive_group()
    by.add_argument("--simulation", action="store_true", help="only those for the simulation")
    by.add_argument("--tests", action="store_true", help="only those for tests")
    by.add_argument("--sample", type=int, metavar="COUNT", help="so many that a machine makes")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="of those")
    parser.add_argument("--below", default="", metavar="PATH", help="only in files that begin so")
    asked = parser.parse_args(arguments)
    if asked.sample is not None:
        return _by_machine(asked)
    known = mutants()
    if unknown := set(asked.names) - known.keys():
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    wanted = {name: known[name] for name in asked.names} or known
    complaints: list[str] = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        if not asked.simulation and (some := for_tests(wanted)):
            complaints += _by_tests(some, pool, known if asked.keep else None)
        if not asked.tests and (some := for_simulation(wanted)):
            complaints += _by_simulation(some, pool, asked.seeds_max, known if asked.keep else None)
    if asked.keep:
        write_tables(known)
    for line in complaints:
        _say(line)
    return 1 if complaints else 0


def _by_machine(asked: argparse.Namespace) -> int:
    with ThreadPoolExecutor(asked.jobs) as pool:
        mistakes = sample(asked.seed, asked.sample, asked.below)
        found = score(mistakes, SAMPLE_SEEDS, pool, _say)
    _say(f"{found}; seed {asked.seed}")
    return 1 if found.survivors else 0


def _by_simulation(
    wanted: Mapping[str, Mutant],
    pool: ThreadPoolExecutor,
    seeds_max: int,
    known: Mapping[str, Mutant] | None,
) -> list[str]:
    """Gives complaints. Keeps what it finds in the order of `known`, unless that is None."""
    caught: dict[str, Caught] = {}
    tries = pool.map(partial(_try, seeds_max), wanted.values())
    for mutant, found in zip(wanted.values(), tries, strict=True):
        _say(_row(mutant, found))
        if isinstance(found, Finding) and found.seed and found.catches(mutant):
            caught[mutant.name] = Caught(found.seed, tuple(sorted(found.violated)))
    complaints = list(_control(caught, pool))
    if known is not None:
        keep(kept() | caught, for_simulation(known))
    seeds = f"; seeds needed: median {median(caught.values()):g}" if caught else ""
    _say(f"{len(caught)} of {len(wanted)} mutants are noticed by the simulation{seeds}")
    return [*complaints, *(f"{name} is not noticed" for name in wanted if name not in caught)]


def _try(seeds_max: int, mutant: Mutant) -> Finding | NotRun:
    try:
        return try_out(mutant.edits, FIRST_SEED, seeds_max)
    except NotRun as error:
        return error


def _control(caught: Mapping[str, Caught], pool: ThreadPoolExecutor) -> Iterator[str]:
    """With these very seeds there must be nothing wrong with the product as it is."""
    seeds = sorted({one.seed for one in caught.values()})
    tried = pool.map(_untouched, seeds)
    for seed, found in zip(seeds, tried, strict=True):
        if found.violated:
            yield f"seed {seed} violates {', '.join(sorted(found.violated))} without any mutant"


def _untouched(seed: int) -> Finding:
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


def _by_tests(
    wanted: Mapping[str, Mutant], pool: ThreadPoolExecutor, known: Mapping[str, Mutant] | None
) -> list[str]:
    """As `_by_simulation`. One that is said to change nothing must not be noticed."""
    noticed: dict[str, str] = {}
    complaints: list[str] = []
    for mutant, found in zip(wanted.values(), pool.map(_test, wanted.values()), strict=True):
        _say(_tested(mutant, found))
        if isinstance(found, Noticed) and found.test is not None:
            noticed[mutant.name] = found.test
        if isinstance(found, NotRun) or (found.test is None) != (mutant.equivalent is not None):
            complaints.append(_tested(mutant, found))
    selected = sorted(set(noticed.values()))
    if selected and (failed := try_tests((), selected).test):
        complaints.append(f"{failed} fails without any mutant")
    if known is not None:
        keep_tests(kept_tests() | noticed, for_tests(known))
    alike = sum(mutant.equivalent is not None for mutant in wanted.values())
    _say(f"{len(noticed)} of {len(wanted) - alike} mutants are noticed by tests")
    return complaints


def _test(mutant: Mutant) -> Noticed | NotRun:
    try:
        return try_tests(mutant.edits, mutant.tests)
    except NotRun as error:
        return error


def _tested(mutant: Mutant, found: Noticed | NotRun) -> str:
    if isinstance(found, NotRun):
        return f"{mutant.name:<36} NOT RUN: {found}"
    if found.test is None:
        how = "changes nothing" if mutant.equivalent else f"SURVIVED {' '.join(mutant.tests)}"
    else:
        how = shown(found.test)
    return f"{mutant.name:<36} {how:<60} {found.seconds:.0f} s"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
