"""The model on the page is what its own rules, and the settings as shipped, come to."""

import re

from musterd.manager.duties.duty import DUTIES
from musterd.manager.duties.leadership import (
    LOOK_SECONDS_ALL,
    LOOK_SECONDS_MIN,
    LOOKS_A_SECOND,
)
from musterd.manager.duties.leadership import LOOK_SECONDS_MAX as MOST_SECONDS
from musterd.store.leases import EXCHANGES_AT_ONCE
from musterd.store.nodes import HEARTBEAT_SECONDS
from musterd.workers.idleness import CHECK_SECONDS_MAX
from tests.support.pages import page, table
from tests.support.stage import settings_with

PAGE = page("scale.md")
DOING, DOING_AT_REST = 1.5, 0.35  # statements a second of the duties themselves, as the page says
OUTLOOK_SECONDS = 0.95 * CHECK_SECONDS_MAX  # with its jitter
OTHER_CONNECTIONS = EXCHANGES_AT_ONCE + 2  # for claims, renewals and hints


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def shown(statements: float) -> float:
    return round(statements, 1) if statements < 10 else round(statements)


def of_duties(nodes: int) -> float:
    """To hold them and to look for them, all nodes."""
    holding = min(nodes, len(DUTIES)) / settings_with().duties.heartbeat_seconds
    usual = max(LOOK_SECONDS_MIN, nodes / LOOKS_A_SECOND)
    return holding + (1 / LOOK_SECONDS_ALL if nodes == 1 else nodes / min(MOST_SECONDS, usual))


def at_rest(nodes: int) -> float:
    """A second, of all nodes together."""
    each = 1 / OUTLOOK_SECONDS + 1 / HEARTBEAT_SECONDS
    return nodes * each + of_duties(nodes) + DOING_AT_REST


def polling(nodes: int, poll_ms: float, scale_ms: float) -> int:
    polls, ticks = 1000 / poll_ms, 1000 / scale_ms
    each = polls + max(0.0, ticks - polls) + 1 / HEARTBEAT_SECONDS
    return round(nodes * each + of_duties(nodes) + DOING)


def test_each_row_of_the_model_is_computed() -> None:
    workers, pool_size = settings_with().workers, settings_with().store.pool_size
    rows = table(PAGE, "nodes", "at rest: statements/s")
    assert len(rows) == 5
    for nodes, rest, connections, shipped, set_to, then, _ in rows:
        count = int(number(nodes))
        poll_ms, scale_ms = workers.poll_interval_ms, workers.scale_interval_ms
        assert number(rest) == shown(at_rest(count))
        assert number(shipped) == polling(count, poll_ms, scale_ms)
        assert number(connections) == count * (pool_size + OTHER_CONNECTIONS)
        found = [number(one) for one in re.findall(r"[\d,]+\d", set_to)]
        assert number(then) == polling(count, found[0], found[1] if found[1:] else scale_ms)


def test_it_comes_within_a_tenth_of_what_was_measured() -> None:
    measured = {
        int(row[0]): float(row[3])
        for row in table(page("benchmarks.md"), "daemons", "drain of 20,000 jobs")
        if row[3]
    }
    assert set(measured) == {1, 5, 10}
    for nodes, statements in measured.items():
        assert abs(at_rest(nodes) - statements) <= statements / 10
