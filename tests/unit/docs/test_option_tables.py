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
from tests.support.pages import codes, page

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


def test_the_client_names_only_options_that_there_are() -> None:
    said = inspect.getdoc(Client.enqueue) or ""
    options = said.partition("Options:")[2].partition("\n\n")[0]
    assert set(codes(options)) <= set(NAMES)
