"""The model on the page is what its own rules, and the settings as shipped, come to."""

import re

from musterd.manager.duties.names import DUTIES
from musterd.manager.duties.turns import (
    LOOK_SECONDS_ALL,
    LOOK_SECONDS_MAX,
    LOOK_SECONDS_MIN,
    LOOKS_A_SECOND,
)
from musterd.store.nodes import HEARTBEAT_SECONDS
from tests.support.pages import page, table
from tests.support.stage import settings_with

PAGE = page("scale.md")
DOING = 1.3  # statements a second of the duties themselves, as the page says
OTHER_CONNECTIONS = 3  # for claims, renewals and hints


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def idle_statements(nodes: int, poll_ms: int, scale_ms: int) -> int:
    """A second, of all nodes together."""
    polls, ticks = 1000 / poll_ms, 1000 / scale_ms
    each = polls + max(0.0, ticks - polls) + 1 / HEARTBEAT_SECONDS
    holding = min(nodes, len(DUTIES)) / settings_with().duties.heartbeat_seconds
    usual = max(LOOK_SECONDS_MIN, nodes / LOOKS_A_SECOND)
    looking = 1 / LOOK_SECONDS_ALL if nodes == 1 else nodes / min(LOOK_SECONDS_MAX, usual)
    return round(nodes * each + holding + looking + DOING)


def test_each_row_of_the_model_is_computed() -> None:
    workers, pool_size = settings_with().workers, settings_with().store.pool_size
    rows = table(PAGE, "nodes", "idle statements/s with the defaults")
    assert len(rows) == 5
    for nodes, shipped, connections, set_to, then, _ in rows:
        count = number(nodes)
        poll_ms, scale_ms = workers.poll_interval_ms, workers.scale_interval_ms
        assert number(shipped) == idle_statements(count, poll_ms, scale_ms)
        assert number(connections) == count * (pool_size + OTHER_CONNECTIONS)
        found = [number(one) for one in re.findall(r"[\d,]+\d", set_to)]
        assert number(then) == idle_statements(count, found[0], found[1] if found[1:] else scale_ms)


def test_it_comes_within_a_tenth_of_what_was_measured() -> None:
    workers = settings_with().workers
    measured = {
        int(row[0]): float(row[3])
        for row in table(page("benchmarks.md"), "daemons", "drain of 20,000 jobs")
        if row[3]
    }
    assert set(measured) == {1, 5, 10}
    for nodes, statements in measured.items():
        on_paper = idle_statements(nodes, workers.poll_interval_ms, workers.scale_interval_ms)
        assert abs(on_paper - statements) <= statements / 10
