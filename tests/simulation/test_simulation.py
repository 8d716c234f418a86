"""A number of seeds, each judged by the checker. More of them: `make simulate SEEDS=1:1000`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.batch import Tally, results
from tests.simulation.plan import JOB_FAULTS, draw
from tests.simulation.running import run
from tests.simulation.showing import summary, told
from tests.simulation.sometimes import SEEDS_MIN, never
from tests.simulation.troubles import TROUBLES

SEEDS = int(os.environ.get("MUSTERD_TEST_SEEDS", "20"))
JOBS = int(os.environ.get("MUSTERD_TEST_SEED_JOBS", "1"))
KEPT = Path(__file__).with_name("seeds.txt")


def kept_seeds() -> list[int]:
    lines = (line.partition("#")[0] for line in KEPT.read_text(encoding="utf-8").splitlines())
    return [int(line.split()[0]) for line in lines if line.strip()]


@pytest.mark.timeout(max(120, 4 * SEEDS))
def test_seeds_hold() -> None:
    tally = Tally()
    for result in results(range(1, SEEDS + 1), JOBS):
        tally.add(result)
    missing = never(tally.hit) if SEEDS >= SEEDS_MIN else []
    assert not tally.failed, "\n".join(map(told, tally.failed))
    assert not missing, summary(tally, missing)


def test_seeds_that_once_found_something_hold() -> None:
    again = [run(draw(seed)) for seed in kept_seeds()]
    assert [one.scenario.seed for one in again if one.violated] == []


def test_there_are_many_kinds_of_faults() -> None:
    assert len({*TROUBLES, *JOB_FAULTS}) >= 30


@pytest.mark.parametrize("seed", [3, 9, 14])
def test_a_seed_is_the_same_in_every_process(seed: int) -> None:
    hashes = {_hash_in_a_process(seed, hash_seed) for hash_seed in ("1", "2")}
    assert hashes == {run(draw(seed)).hash}


def _hash_in_a_process(seed: int, hash_seed: str) -> str:
    program = (
        "from tests.simulation.plan import draw\n"
        "from tests.simulation.running import run\n"
        "import sys\n"
        f"sys.stdout.write(run(draw({seed})).hash)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return done.stdout


def test_a_seed_is_the_same_again_in_one_process() -> None:
    assert run(draw(5)).lines == run(draw(5)).lines
