"""The page on events tells each type that there is, in order, with the keys of its data."""

import attrs

from musterd.manager.node.status import Decision
from musterd.store.event_types import EVENTS
from musterd.store.events import EVENTS_A_ROW_MAX, TEXT_LENGTH_MAX
from tests.support.pages import bare, codes, page, table

PAGE = page("events.md")


def test_every_type_is_told_with_its_data() -> None:
    found = [(bare(type_), tuple(codes(data))) for type_, data, _ in table(PAGE, "type", "data")]
    assert found == list(EVENTS.items())


def test_a_decision_is_told_whole() -> None:
    fields = [field.name for field in attrs.fields(Decision)]
    assert list(EVENTS["scale.decided"]) == ["node", *fields, "due_exact"]


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"cut after {TEXT_LENGTH_MAX:,} characters" in PAGE
    assert EVENTS_A_ROW_MAX == 1000
    assert "up to a thousand events in a row" in " ".join(PAGE.split())
