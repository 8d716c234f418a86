"""One event is one line, whatever is in it, and a flood is held back."""

import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.log import (
    REPEATS_MAX,
    WINDOW_SECONDS,
    Format,
    JournalFormatter,
    JsonFormatter,
    LogfmtFormatter,
    TextFormatter,
    event,
    extra,
    is_journal,
    set_up_log,
    tenant_log,
)

Lines = Callable[[], list[str]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.fixture(autouse=True)
def clean_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def lines_of(form: Format, stream: io.StringIO, **fields: object) -> list[str]:
    log = set_up_log("info", form, Clock(), stream)
    event(log, logging.INFO, "crew resized", **fields)
    return stream.getvalue().splitlines()


def test_logfmt_names_every_field() -> None:
    (line,) = lines_of("logfmt", io.StringIO(), before=2, after=5, why='says "more"', none=None)
    assert re.fullmatch(
        r'ts=\d{4}-\d\d-\d\dT[\d:.]{12}Z level=info event="crew resized" before=2 after=5'
        r' why="says \\"more\\"" none=null',
        line,
    )


def test_json_is_one_object_a_line() -> None:
    (line,) = lines_of("json", io.StringIO(), before=2, text="a\nb")
    found = json.loads(line)
    assert (found["event"], found["before"], found["text"]) == ("crew resized", 2, "a\nb")


def test_text_is_for_people() -> None:
    (line,) = lines_of("text", io.StringIO(), before=2, after=5)
    assert re.fullmatch(r"\d\d:\d\d:\d\d crew resized before=2 after=5", line)


def test_text_spares_its_reader_the_quotes_of_quotes() -> None:
    (line,) = lines_of("text", io.StringIO(), error='{"type": "x"}', why="no room\n")
    assert line.endswith(' error={"type": "x"} why="no room\\n"')


def test_auto_is_text_on_a_terminal_and_logfmt_elsewhere() -> None:
    assert "event=" not in lines_of("auto", Terminal())[0]
    assert "event=" in lines_of("auto", io.StringIO())[0]


@given(st.text(), st.text())
def test_whatever_is_logged_is_one_line(value: str, phrase: str) -> None:
    fields = {"value": value}
    record = logging.LogRecord("musterd", logging.INFO, "", 0, phrase, (), None)
    record.__dict__["fields"] = fields
    line = LogfmtFormatter().format(record)
    assert line.isprintable()


def test_a_value_that_cannot_be_shown_does_not_cost_the_line() -> None:
    assert lines_of("logfmt", io.StringIO(), odd=Unshowable())[0].endswith('odd="<Unshowable>"')
    assert json.loads(lines_of("json", io.StringIO(), odd=Unshowable())[0])["odd"] == "<Unshowable>"


def test_a_field_never_hides_the_lines_own() -> None:
    found = json.loads(lines_of("json", io.StringIO(), level=9, event="x")[0])
    assert (found["level"], found["level_"], found["event_"]) == ("info", 9, "x")


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_a_traceback_stays_on_its_line(form: Format) -> None:
    stream = io.StringIO()
    log = set_up_log("info", form, Clock(), stream)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("went wrong")
    (line,) = stream.getvalue().splitlines()
    assert "ValueError" in line


def test_what_is_below_the_level_is_not_written() -> None:
    stream = io.StringIO()
    log = set_up_log("warning", "logfmt", Clock(), stream)
    event(log, logging.INFO, "quiet")
    event(log, logging.WARNING, "loud")
    logging.getLogger("somebody.else").info("theirs")
    assert [line.split("event=")[1] for line in stream.getvalue().splitlines()] == ["loud"]


def test_setting_up_again_replaces_and_does_not_double() -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up_log("info", "logfmt", Clock(), first)
    event(set_up_log("info", "logfmt", Clock(), second), logging.INFO, "once")
    assert (first.getvalue(), len(second.getvalue().splitlines())) == ("", 1)


def test_a_flood_is_held_back_and_owned_up_to() -> None:
    clock, stream = Clock(), io.StringIO()
    log = set_up_log("info", "logfmt", clock, stream)
    for number in range(REPEATS_MAX + 7):
        event(log, logging.INFO, "again", number=number)
    event(log, logging.INFO, "another")
    assert len(stream.getvalue().splitlines()) == REPEATS_MAX + 1
    clock.now += WINDOW_SECONDS
    event(log, logging.INFO, "again")
    assert stream.getvalue().splitlines()[-1].endswith("event=again held_back=7")


def test_a_reader_that_is_gone_is_no_error() -> None:
    stream = io.StringIO()
    log = set_up_log("info", "logfmt", Clock(), stream)
    stream.close()
    event(log, logging.INFO, "into the void")


def test_the_journal_is_told_the_level() -> None:
    record = logging.LogRecord("musterd", logging.ERROR, "", 0, "bad", (), None)
    assert JournalFormatter(LogfmtFormatter()).format(record).startswith("<3>ts=")


@pytest.mark.parametrize(
    ("level", "priority"),
    [
        (logging.DEBUG, 7),
        (logging.INFO, 6),
        (logging.WARNING, 4),
        (logging.ERROR, 3),
        (logging.CRITICAL, 2),
    ],
)
def test_each_level_is_a_priority(level: int, priority: int) -> None:
    record = logging.LogRecord("musterd", level, "", 0, "so", (), None)
    assert JournalFormatter(LogfmtFormatter()).format(record).startswith(f"<{priority}>ts=")


def test_each_line_of_a_traceback_tells_the_journal_its_level() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        about = sys.exc_info()
    record = logging.LogRecord("musterd", logging.ERROR, "", 0, "went wrong", (), about)
    lines = JournalFormatter(TextFormatter()).format(record).splitlines()
    assert len(lines) > 3
    assert all(line.startswith("<3>") for line in lines)
    (one,) = JournalFormatter(JsonFormatter()).format(record).splitlines()
    assert "ValueError" in json.loads(one.removeprefix("<3>"))["traceback"]


def test_an_error_has_fields_and_a_traceback() -> None:
    stream = io.StringIO()
    log = set_up_log("info", "json", Clock(), stream)
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("went wrong", extra=extra(job_id=7, kind="report", attempt=2))
    found = json.loads(stream.getvalue())
    assert (found["event"], found["job_id"], found["attempt"]) == ("went wrong", 7, 2)
    assert "ValueError: no" in found["traceback"]


def test_only_the_journals_own_stream_is_the_journal() -> None:
    assert not is_journal(io.StringIO(), {"JOURNAL_STREAM": "1:2"})
    with Path(__file__).open(encoding="utf-8") as file:  # any open file will do
        status = os.fstat(file.fileno())
        assert is_journal(file, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        assert not is_journal(file, {"JOURNAL_STREAM": "1:2"})
        assert not is_journal(file, {})


def test_events_of_a_tenant_name_it_except_those_of_the_default_tenant() -> None:
    stream = io.StringIO()
    log = set_up_log("info", "logfmt", lambda: 0.0, stream)
    event(tenant_log(log, "acme"), logging.INFO, "crew resized", after=2)
    event(tenant_log(log, DEFAULT_TENANT), logging.INFO, "crew resized", after=3)
    tenant_log(log, "acme").warning("bare")
    tenant_log(log, "acme").error("failed", extra=extra(duty="reaping"))
    lines = [line.partition("event=")[2] for line in stream.getvalue().splitlines()]
    assert lines == [
        '"crew resized" after=2 tenant=acme',
        '"crew resized" after=3',
        "bare tenant=acme",
        "failed duty=reaping tenant=acme",
    ]
