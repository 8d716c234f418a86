"""Hundreds of rounds among hostile neighbours, on both engines."""

from __future__ import annotations

import pytest

from tests.neighbours.__main__ import ENGINES, main
from tests.support.scale import scaled

ROUNDS = 200


@pytest.mark.parametrize("engine", ENGINES)
def test_no_neighbour_costs_an_innocent_job(engine: str) -> None:
    assert main(["--engine", engine, "--rounds", str(scaled(ROUNDS))]) == 0
