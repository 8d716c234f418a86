"""How many nodes there is work for, from what is to be done and what nodes wish for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from musterd.manager.scaling.nodes import nodes_for, wished_workers, workers_desired
from musterd.store.nodes import NodeRecord

SEEN_AT = datetime(2026, 1, 2, tzinfo=UTC)


def node(wish: int | None, **values: Any) -> NodeRecord:
    known: dict[str, Any] = {
        "id": UUID(int=1), "name": "north", "version": "1", "started_at": SEEN_AT,
        "heartbeat_at": SEEN_AT, "silent_seconds": 1.0, "phase": "running", "idle": 2, "busy": 0,
        "retiring": 0, "default_count": 2, "max_count": 8, "pause_seconds": 5.0, "kinds": None,
        "wish": wish,
    }  # fmt: skip
    return NodeRecord(**(known | values))


def nodes_desired(
    work: int, wished: int | None, policy: Any, max_running: int | None = None
) -> int:
    """Of eight workers each."""
    return nodes_for(workers_desired(work, wished, policy, max_running), 8)


@pytest.mark.parametrize(("work", "nodes"), [(0, 0), (1, 1), (8, 1), (9, 2), (4_000, 500)])
@pytest.mark.parametrize("policy", ["demand", "depth", "latency"])
def test_each_job_has_a_worker_on_some_node(policy: Any, work: int, nodes: int) -> None:
    assert nodes_desired(work, None, policy) == nodes


@pytest.mark.parametrize(
    ("work", "wished", "nodes"),
    [
        (4_000, 3, 1),
        (4_000, 30, 4),
        (4_000, 0, 1),  # what is due soon, or only just: somebody has to be there for it
        (3, 30, 1),  # nodes spoke before the work was done
        (0, 30, 0),
    ],
)
def test_under_latency_the_nodes_wish_counts_as_far_as_there_is_work(
    work: int, wished: int, nodes: int
) -> None:
    assert nodes_desired(work, wished, "latency") == nodes
    assert nodes_desired(work, wished, "demand") == nodes_desired(work, None, "demand")


def test_no_more_nodes_than_jobs_may_run() -> None:
    assert nodes_desired(4_000, None, "demand", 20) == 3
    assert nodes_desired(4_000, 30, "latency", 20) == 3
    assert nodes_desired(9, None, "demand", 20) == 2


def test_the_wish_is_that_of_nodes_that_take_jobs() -> None:
    assert wished_workers([]) is None
    assert wished_workers([node(None), node(5, phase="draining")]) is None
    assert wished_workers([node(5, silent_seconds=60.0), node(0)]) == 0
    assert wished_workers([node(5), node(None), node(7)]) == 12
