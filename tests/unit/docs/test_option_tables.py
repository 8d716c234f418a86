"""The options of a job are declared once: the pages and all that takes options say the same."""

from __future__ import annotations

import inspect

import attrs
import pytest

from musterd import Client
from musterd.config.job_options import NAMES, OPTIONS
from musterd.config.schedules import ScheduleTable
from musterd.console.verbs.enqueue import enqueue
from musterd.store.jobs import NewJob
from tests.support.option_tables import pages
from tests.support.pages import anchors, codes, page

PAGES = pages()


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_has_what_is_declared(name: str) -> None:
    assert page(name) == PAGES[name], "make reference"


def test_a_new_job_has_every_option_and_no_other() -> None:
    assert NewJob._fields == ("kind", *NAMES)


def test_the_command_line_has_every_flag() -> None:
    taken = {one.name: tuple(one.opts) for one in enqueue.params}
    declared = {one.name: one.flags for one in OPTIONS if one.flags}
    assert declared.items() <= taken.items()


def test_schedules_have_the_options_that_say_so() -> None:
    keys = {one.name for one in attrs.fields(ScheduleTable)}
    assert keys & set(NAMES) == {one.name for one in OPTIONS if one.in_schedules}


def test_the_client_takes_them_by_name_and_says_where_they_are_listed() -> None:
    signature = inspect.signature(Client.enqueue)
    named = {name for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD}
    assert named & set(NAMES) == {"payload"}
    said = inspect.getdoc(Client.enqueue) or ""
    assert "docs/clients.md lists under Options" in said
    assert "options" in anchors(page("clients.md"))
    assert set(codes(said)) & set(NAMES) <= {"dedup_key"}, "they are listed where a test reads them"
