"""A daemon among hostile neighbours, on both engines: some rounds of another seed each time."""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path

from tests.neighbours.campaign import run
from tests.support.command import Home

LOG = logging.getLogger(__name__)  # pytest --log-cli-level=info shows the figures
ROUNDS = 4


def test_no_neighbour_costs_an_innocent_job(machine: Home, tmp_path: Path) -> None:
    seed = int(os.environ.get("MUSTERD_TEST_SEED", secrets.randbelow(1_000_000)))
    figures = run(machine, tmp_path, seed, ROUNDS)
    LOG.info("%s", figures)
    assert figures.fault is None, figures.fault
    assert figures.rounds == ROUNDS
    assert figures.innocents > 0
