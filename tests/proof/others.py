"""What other packages do by themselves, at a larger size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.mutants.sampling import SAMPLE_SEEDS, sample
from tests.mutants.scoring import score
from tests.proof.ledger import Line, Plan

MISTAKES = 20  # of a machine, at scale 1
HISTORIES = 500
ROOT = Path(__file__).parents[2]
STATEFUL = ROOT / "tests" / "stateful"
TIMEOUT = ("--timeout", "36000", "-o", "faulthandler_timeout=36000")


def simulate(plan: Plan) -> Line:
    """Each seed a cluster; a violated one is printed, and can be run again by itself."""
    count, wrong = _told("tests.simulation", "--seeds", f"{plan.seed}:{plan.seeds}")
    return Line("simulation", f"{count:,} of {plan.seeds:,} seeds from {plan.seed}", wrong)


def histories(plan: Plan) -> Line:
    """Those that are violated are kept."""
    wanted = round(HISTORIES * plan.scale)
    words = ("--first", str(plan.seed), "--count", str(wanted), "--folder", str(plan.folder))
    count, wrong = _told("tests.histories", *words)
    what = f"{count:,} of {wanted:,} short histories of PostgreSQL from {plan.seed}"
    return Line("histories", what, wrong)


def _told(program: str, *words: str) -> tuple[int, int]:
    """How many seeds it tried, and what was wrong."""
    count = violated = 0
    command = [sys.executable, "-m", program, *words, "--jobs", str(os.cpu_count() or 1), "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found: dict[str, object] = json.loads(line) if line.startswith("{") else {}
            count += bool(found)
            if found.get("violated"):
                violated += 1
                print(line.rstrip(), flush=True)
    return count, violated + (process.returncode != 0 and not violated)


def stateful(plan: Plan) -> Line:
    command = [sys.executable, "-m", "pytest", "-n", "auto", *TIMEOUT, str(STATEFUL)]
    environ = os.environ | {"MUSTERD_TEST_SCALE": f"{plan.scale:g}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, check=False
    )
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode:
        print(done.stdout, flush=True)
    return Line("stateful", f"{plan.scale:g} times the examples: {last}", int(done.returncode != 0))


def mistakes(plan: Plan) -> Line:
    """Small ones, which a machine makes; each that nothing notices is a complaint."""
    made = sample(plan.seed, round(MISTAKES * plan.scale))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = score(made, SAMPLE_SEEDS, pool, partial(print, flush=True))
    return Line("mutants", f"{found}; sample {plan.seed}", len(found.survivors))
