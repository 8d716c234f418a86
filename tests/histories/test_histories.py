"""Some short histories of PostgreSQL. More of them: `make histories ARGS="--count 2000"`."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

import pytest

from tests.histories.batch import Tally, results
from tests.histories.plan import LINE_TROUBLES, draw
from tests.support.scale import scaled

COUNT = 20
SEED = "MUSTERD_TEST_SEED"
OPERATIONS_MIN = 50  # of a history


@pytest.mark.timeout(scaled(300))
def test_histories_hold() -> None:
    """Ended lines, crashes and lost replies are among them; what failed stays in the folder."""
    count, first = scaled(COUNT), int(os.environ.get(SEED, secrets.randbelow(1_000_000)))
    tally = Tally(Path(tempfile.gettempdir()) / "musterd-histories")
    for result in results(range(first, first + count), 1):
        tally.add(result)
    assert not tally.failed, "\n".join(map(tally.told, tally.failed))
    assert tally.operations > OPERATIONS_MIN * count, tally.summary()
    assert tally.met["unknown"] > 0, tally.summary()


def test_a_seed_makes_one_plan() -> None:
    assert draw(7) == draw(7)
    met = {trouble.what for seed in range(1000) for trouble in draw(seed).troubles}
    assert met >= {*LINE_TROUBLES, "sessions_ended", "server_crash"}
