"""What systemd is told, and when: by values alone."""

from typing import Any

import attrs
import pytest

from musterd.manager.node.status import NodeStatus, StoreAndCrew, TenantStatus
from musterd.manager.node.systemd import (
    TEXT_LENGTH_MAX,
    DaemonView,
    Liveness,
    Sent,
    next_message,
    status_text,
    why_unwell,
)

SEEN = StoreAndCrew("running", "sqlite", "sqlite:///m.db", None, 0.0, None, 2, 4, 0, 2, 8, 41, 7)
TENANT = TenantStatus(**attrs.asdict(SEEN), name="default", retention_trouble=None)
NODE = NodeStatus(
    **attrs.asdict(SEEN), node="north", version="1", up_seconds=60.0, drain_seconds_left=None,
    last_decision=None, tenants=(TENANT,),
)  # fmt: skip
STARTING = attrs.evolve(NODE, phase="starting", idle=0, busy=0, depth=None, tenants=())
DRAINING = attrs.evolve(NODE, phase="draining", drain_seconds_left=251.7, busy=3)


def seen(status: NodeStatus = NODE, now: float = 100.0, **changes: Any) -> DaemonView:
    return attrs.evolve(DaemonView(now, status, None, False, None), **changes)


def test_ready_is_said_once_and_not_before_the_node_is() -> None:
    lines, told = next_message(seen(STARTING, 100), Sent(), None)
    assert lines == ["EXTEND_TIMEOUT_USEC=30000000", "STATUS=starting"]
    lines, told = next_message(seen(NODE, 101), told, None)
    assert lines == ["READY=1", "STATUS=6/8 workers, 41 due"]
    assert next_message(seen(NODE, 200), told, None) == ([], told)


def test_while_it_starts_it_asks_for_time_again_and_again_however_long_it_takes() -> None:
    told, asked = Sent(), 0
    for now in range(3_600):
        lines, told = next_message(seen(STARTING, now), told, None)
        asked += any(line.startswith("EXTEND") for line in lines)
    assert asked == 720


def test_a_drain_asks_for_time_up_to_its_own_end() -> None:
    told, asked = Sent(ready=True), list[int]()
    for now in range(100, 200):
        lines, told = next_message(seen(DRAINING, now, stop_by_local=150.0), told, None)
        asked += [now for line in lines if line.startswith("EXTEND")]
        assert ("STOPPING=1" in lines) == (now == 100)
    assert asked == list(range(100, 151, 5))


def test_one_that_is_told_to_stop_before_it_was_ready_never_says_ready() -> None:
    lines, told = next_message(seen(STARTING, 1, stop_by_local=9), Sent(), None)
    assert "STOPPING=1" in lines
    assert not told.ready


def test_the_watchdog_is_fed_in_time_and_only_while_all_is_well() -> None:
    told, fed = Sent(), list[int]()
    for now in range(60):
        unwell = "the event loop is 6.0 s late" if 20 <= now < 40 else None
        lines, told = next_message(seen(NODE, now, unwell=unwell), told, 10.0)
        fed += [now] if "WATCHDOG=1" in lines else []
    assert fed == [0, 10, 40, 50]


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        (STARTING, {}, "starting"),
        (
            attrs.evolve(STARTING, store_trouble="unreachable", store_message="no route\nto host"),
            {},
            "waiting for the store: no route\\nto host",
        ),
        (attrs.evolve(NODE, depth=None), {}, "6/8 workers, ? due"),
        (attrs.evolve(NODE, depth=12_345), {}, "6/8 workers, 12,345 due"),
        (
            attrs.evolve(NODE, tenants=(attrs.evolve(TENANT, store_trouble="disk_full"),)),
            {},
            "6/8 workers, 41 due; the store of default has no disk space left",
        ),
        (
            DRAINING,
            {"stop_by_local": 1.0},
            "draining, 3 running, 4 m 12 s left; 5/8 workers, 41 due",
        ),
        (
            NODE,
            {"reload_refused": True},
            "6/8 workers, 41 due; the last reload was refused, see the log",
        ),
        (NODE, {"unwell": "it is late"}, "6/8 workers, 41 due; it is late"),
    ],
)
def test_the_status_line(status: NodeStatus, changes: dict[str, Any], text: str) -> None:
    assert status_text(seen(status, **changes)) == text


def test_the_status_line_is_bounded() -> None:
    names = [attrs.evolve(TENANT, name=f"t{n}", store_trouble="starting") for n in range(500)]
    text = status_text(seen(attrs.evolve(NODE, tenants=tuple(names))))
    assert len(text) == TEXT_LENGTH_MAX
    assert text.startswith("6/8 workers")


def vitals(unrenewed: float | None, *, trouble: bool = False, tenant: str = "acme") -> Liveness:
    return Liveness(tenant, 30.0, unrenewed, trouble)


def test_well_is_a_loop_in_time_and_leases_that_are_renewed_or_a_store_known_to_be_away() -> None:
    assert why_unwell([], 0.0, 5.0) is None
    assert why_unwell([vitals(None), vitals(29.0), vitals(3_600.0, trouble=True)], 5.0, 5.0) is None


def test_what_is_wrong_is_said() -> None:
    assert why_unwell([], 5.1, 5.0) == "the event loop is 5.1 s late"
    said = why_unwell([vitals(None, tenant="default"), vitals(31.0)], 0.0, 5.0)
    assert said == "no lease of acme could be renewed for 31.0 s"
