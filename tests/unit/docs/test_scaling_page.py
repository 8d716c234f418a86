"""The page on scaling names every limit and every field of the journal."""

from typing import get_args

import attrs

from musterd.manager.scaling import Limit
from musterd.manager.view import Decision
from tests.support.pages import bare, page, table

PAGE = page("scaling.md")


def test_every_limit_is_told() -> None:
    found = {bare(limit) for limit, _ in table(PAGE, "limited by", "means")}
    assert found == set(get_args(Limit))


def test_every_field_of_the_journal_is_told() -> None:
    found = {bare(field) for field, *_ in table(PAGE, "field", "column")}
    assert found == set(attrs.fields_dict(Decision))
