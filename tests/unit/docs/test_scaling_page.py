"""The page on scaling names every limit, every field of the journal, and shares as they are."""

from typing import get_args

import attrs

from musterd.manager.node.status import Decision
from musterd.manager.scaling import observer
from musterd.manager.scaling.decision import Limit, Others, share_of
from musterd.manager.scaling.latency import MEASURED_RUNS, Because
from musterd.store.nodes import LIVE_SECONDS, YOUNG_SECONDS
from musterd.store.queue import LINE_MAX
from tests.support.pages import bare, page, table

PAGE = page("scaling.md")


def test_every_limit_is_told() -> None:
    found = {bare(limit) for limit, _ in table(PAGE, "limited by", "means")}
    assert found == set(get_args(Limit)) | {"hours:NAME"}


def test_all_that_a_wish_may_come_from_is_told() -> None:
    found = {bare(because) for because, _ in table(PAGE, "because", "workers")}
    assert found == set(get_args(Because)) - {"depth"}
    assert f"fewer than {MEASURED_RUNS} attempts have measured" in PAGE
    assert f"the first {LINE_MAX:,} rows of the line" in PAGE


def test_every_field_of_the_journal_is_told() -> None:
    found = {bare(field) for field, *_ in table(PAGE, "field", "column")}
    assert found == {*attrs.fields_dict(Decision), "until", "ticks", "node", "node_id", "due_exact"}


def test_the_shares_of_the_example_are_those_of_the_code() -> None:
    rows = [
        tuple(map(int, numbers))
        for _, *numbers in table(PAGE, "node", "`max_count`", "busy", "room")
    ]
    assert sum(share for *_, share in rows) == 12
    before = 0
    for most, busy, room, others, share in rows:
        assert room == most - busy
        assert others == sum(one[2] for one in rows) - room
        assert share == share_of(12, room, Others(others, before, lot=1_800_000_000_000_000))
        before += room


def test_the_times_are_those_of_the_code() -> None:
    assert (
        f"until it has been silent for {LIVE_SECONDS:.0f} seconds ({YOUNG_SECONDS:.0f} in" in PAGE
    )
    assert f"For {observer.REUNION_SECONDS:.0f} seconds each node believes" in PAGE
    assert f"takes more than {observer.STALE_SECONDS:.0f} s to answer" in PAGE
    assert observer.OVERDUE_INTERVALS == 2
