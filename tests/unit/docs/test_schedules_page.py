"""The page on schedules is true: its keys, its tables, its examples are computed again."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import attrs
import pytest

from musterd.config.cron import NICKNAMES, Cron, read_cron
from musterd.config.load import load
from musterd.config.schedules import ScheduleTable
from musterd.console.verbs.schedules import schedules
from musterd.manager.duties.schedules import (
    CLOCK_AHEAD,
    HELD_BACK_SECONDS,
    LOOK_SECONDS,
    MISSED_MAX,
    ON_TIME,
    SLOTS_A_ROUND,
    SLOTS_SHOWN,
    schedule_object,
    seeing,
)
from musterd.store.schedules import ScheduleRecord
from tests.support.pages import Block, bare, blocks, codes, page, table

PAGE = page("schedules.md")
BERLIN = ZoneInfo("Europe/Berlin")
UTC_ZONE = ZoneInfo("UTC")
ABSENT = Path("no-such-file.toml")
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize("block", blocks(PAGE, "toml"), ids=lambda block: str(block.line))
def test_an_example_loads(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text(block.text)
    assert set(load(file, {}, []).settings.schedules) == {"nightly", "pulse"}


def test_every_key_is_told_with_its_default() -> None:
    rows = table(PAGE, "key", "default", "meaning")
    keys = attrs.fields_dict(ScheduleTable)
    assert [bare(key) for key, *_ in rows] == list(keys)
    for name, said, _ in rows:
        if said.startswith("`"):  # else one that must be there, or is another's
            default = getattr(ScheduleTable(), bare(name))
            shown = default if bare(name) == "payload" else json.dumps(default)
            assert bare(said) == shown, name


def test_every_verb_is_told() -> None:
    (shell,) = blocks(PAGE, "sh")
    told = {line.split()[2] for line in shell.text.splitlines() if line.split()[2] != "#"}
    assert told == set(schedules.commands)


def test_every_nickname_is_told() -> None:
    found = {bare(short): bare(line) for short, line in table(PAGE, "short", "stands for")}
    assert found == dict(NICKNAMES)


def test_what_comes_next_comes_next() -> None:
    for line, said in table(PAGE, "line", "comes next"):
        cron = read_cron(bare(line), UTC_ZONE)
        wanted = said.split(", ")
        assert shown(cron, NOON, len(wanted), "%Y-%m-%d %H:%M:%S", UTC_ZONE) == wanted, line


def test_days_on_which_the_clock_changes() -> None:
    days = (datetime(2026, 3, 29, 1, tzinfo=BERLIN), datetime(2026, 10, 25, 1, tzinfo=BERLIN))
    for line, *said in table(PAGE, "line", "29 March", "25 October"):
        cron = read_cron(bare(line), BERLIN)
        assert [", ".join(until_four(cron, day)) for day in days] == said, line


def until_four(cron: Cron, one_o_clock: datetime) -> Iterator[str]:
    slot = cron.next_after(one_o_clock.astimezone(UTC) - timedelta(seconds=1))
    four_o_clock = one_o_clock.replace(hour=4)
    while slot is not None and slot < four_o_clock:
        yield slot.astimezone(BERLIN).strftime("%H:%M %z")
        slot = cron.next_after(slot)


def test_what_becomes_of_missed_slots() -> None:
    one = NOON.replace(hour=1)
    hourly = read_cron("@hourly", UTC_ZONE)
    for missed, said in table(PAGE, "`missed`", "makes jobs for the slots of"):
        how = json.loads(bare(missed))
        fired = seeing(hourly, one, one.replace(hour=5, minute=10), how).fire
        assert (", ".join(slot.strftime("%H:%M") for slot in fired) or "none") == said
    on_time = seeing(hourly, one, one.replace(hour=5, second=10), "once").fire
    assert [slot.hour for slot in on_time] == [4, 5]


def test_every_key_of_the_object_is_told() -> None:
    (nightly,) = load(None, {}, NIGHTLY, ABSENT).settings.schedules.values()
    record = ScheduleRecord("nightly", NOON, None, None, None, 0, 0, 0, None, NOON)
    found = schedule_object(nightly, record)
    assert [key for keys, _ in table(PAGE, "key", "meaning") for key in codes(keys)] == list(found)
    assert len(found["next"]) == SLOTS_SHOWN  # type: ignore[arg-type]  # a list
    assert f"the next {SLOTS_SHOWN} slots" in PAGE


def test_the_numbers_are_those_of_the_program() -> None:
    text = PAGE.replace("\n", " ")
    for words in (
        f"up to {ON_TIME.seconds} seconds after it",
        f"at most {MISSED_MAX:,} jobs",
        f"the last {MISSED_MAX + 1:,} slots",
        f"rounds of at most {SLOTS_A_ROUND},",
        f"up to {LOOK_SECONDS:g} seconds until",
        f"more than {CLOCK_AHEAD.seconds // 3600} hours ahead",
    ):
        assert words in text
    assert HELD_BACK_SECONDS == 60
    assert "tried again after a minute" in text


NIGHTLY = ("schedules.nightly.kind=report", "schedules.nightly.cron=30 2 * * *")


def shown(cron: Cron, after: datetime, count: int, form: str, zone: ZoneInfo) -> list[str]:
    found: list[str] = []
    for _ in range(count):
        slot = cron.next_after(after)
        assert slot is not None
        found.append(slot.astimezone(zone).strftime(form))
        after = slot
    return found
