"""What is said of nodes that do not agree."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from musterd.store.nodes import GROUPS_MAX, LIVE_SECONDS, NAMES_MAX, NodeRecord, warnings

NOW = datetime(2030, 1, 1, tzinfo=UTC)
A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


def node(name: str, version: str = "1", config_hash: str | None = A, **values: Any) -> NodeRecord:
    fields: dict[str, Any] = {"phase": "running", "silent_seconds": 1.0, **values}
    return NodeRecord(
        id=uuid4(), name=name, version=version, started_at=NOW, heartbeat_at=NOW, idle=1, busy=0,
        retiring=0, default_count=1, max_count=1, kinds=None, config_hash=config_hash, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [node("a")],
        [node("a"), node("b")],
        [node("a", config_generation=1), node("b", config_generation=7)],  # of its own start only
        [node("a"), node("b", config_hash=None)],  # it has not said
        [node("a"), node("b", "2", B, silent_seconds=LIVE_SECONDS)],  # it is dead
    ],
)
def test_nodes_that_agree_are_no_news(nodes: list[NodeRecord]) -> None:
    assert warnings(nodes) == []


def test_who_has_which_configuration() -> None:
    assert warnings([node("c"), node("b", config_hash=B), node("a")]) == [
        f"the nodes have different configurations: {A} on a, c; {B} on b"
    ]


def test_who_runs_which_version() -> None:
    """What a configuration comes to is compared within a version."""
    assert warnings([node("a"), node("b", "2", B)]) == [
        "the nodes run different versions: 1 on a; 2 on b"
    ]


def test_both_at_once() -> None:
    found = warnings([node("a"), node("b", "2"), node("c", "2", B)])
    assert found == [
        "the nodes run different versions: 2 on b, c; 1 on a",
        f"the nodes of version 2 have different configurations: {A} on b; {B} on c",
    ]


def test_a_draining_node_is_still_there() -> None:
    assert len(warnings([node("a"), node("b", "2", phase="draining")])) == 1


def test_the_order_of_the_nodes_does_not_matter() -> None:
    nodes = [node(f"n{number}", str(number % 3)) for number in range(9)]
    assert warnings(nodes) == warnings(nodes[::-1])


def test_a_thousand_nodes_make_one_bounded_line() -> None:
    (line,) = warnings(
        [node(f"n{number:03}", config_hash=f"{number:012}") for number in range(1000)]
    )
    assert line.endswith(f"; others on {1000 - GROUPS_MAX} nodes")
    (line,) = warnings(
        [node("a", config_hash=B), *(node(f"n{number:03}") for number in range(999))]
    )
    assert f"n004 and {999 - NAMES_MAX} more; {B} on a" in line


def test_names_of_unknown_origin_do_no_harm() -> None:
    (line,) = warnings([node("a\x1b[31m\nb"), node("b" * 500, config_hash=B)])
    assert line.isprintable()
    assert len(line) < 300
