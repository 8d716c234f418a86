"""Daemons and server under faults of every kind that we know how to make, for some minutes: the
checker finds nothing, and nothing is left behind.
"""

from __future__ import annotations

import faulthandler
import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults import campaign, failover
from tests.faults.judging import Judged
from tests.faults.sizes import Sizes

LOG = logging.getLogger(__name__)  # pytest --log-cli-level=info shows the figures
SEED = 20301
AS_ROOT_ONLY = "disk_full"  # only root can make a disk that is full

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(autouse=True)
def _patience() -> None:
    """A campaign takes minutes: where all threads stand after one of them is nobody's question."""
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def sizes() -> Sizes:
    found = Sizes()
    if os.geteuid() != 0:
        return found.only(frozenset(found.faults) - {AS_ROOT_ONLY})
    return found


def test_nothing_is_lost_or_done_twice_whatever_befalls_nodes_lines_and_server(
    tmp_path: Path, sizes: Sizes
) -> None:
    holds(campaign.run(tmp_path, SEED, sizes), sizes.faults)


def test_a_failover_without_loss(tmp_path: Path, sizes: Sizes) -> None:
    found = failover.run(tmp_path, SEED, sizes, lossy=False)
    holds(found, {"failover": 1})
    assert found.lost_jobs == 0, found.how_to_judge_again


def test_a_failover_that_loses_the_last_commits(tmp_path: Path, sizes: Sizes) -> None:
    found = failover.run(tmp_path, SEED, sizes, lossy=True)
    holds(found, {"failover_lossy": 1})
    assert found.lost_jobs > 0, found.how_to_judge_again


def holds(found: Judged, wanted: Mapping[str, int]) -> None:
    for line in found.lines:
        LOG.info("%s", line)
    assert not found.complaints, "\n".join([*found.complaints, found.how_to_judge_again])
    short = {name: found.tally[name] for name, count in wanted.items() if found.tally[name] < count}
    assert not short, f"of {wanted} there were only {short}"
