"""Schedules in the settings: what is read, from which layer, how it is shown."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from musterd.config.cron import Every
from musterd.config.load import Loaded, UnsoundSettings, load
from musterd.config.schedules import Schedule
from musterd.config.show import as_text, as_tree

ABSENT = Path("/nonexistent/musterd.toml")
TWO = """
[schedules.nightly]
kind = "report"
cron = "30 2 * * *"
timezone = "Europe/Berlin"
payload = { scope = ["all", 1, 2.5], deep = { on = true } }
target = "reports"
priority = 5
missed = "all"
overlap = "skip"
[schedules.pulse]
kind = "ping"
every_seconds = 90
enabled = false
"""


def loaded(text: str, *sets: str, environ: dict[str, str] | None = None) -> Loaded:
    file = Path("musterd.toml")
    file.write_text(text)
    return load(file, environ or {}, sets, ABSENT)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_schedule_is_read_whole() -> None:
    nightly = loaded(TWO).settings.schedules["nightly"]
    assert json.loads(nightly.payload) == {"scope": ["all", 1, 2.5], "deep": {"on": True}}
    said = (nightly.kind, nightly.target, nightly.priority, nightly.missed, nightly.overlap)
    assert said == ("report", "reports", 5, "all", "skip")
    assert nightly.enabled
    assert nightly.source.endswith("musterd.toml:2")
    slot = nightly.rhythm.next_after(datetime(2026, 11, 18, tzinfo=UTC))
    assert slot == datetime(2026, 11, 18, 1, 30, tzinfo=UTC)


def test_what_is_left_out_has_a_default() -> None:
    pulse = loaded(TWO).settings.schedules["pulse"]
    assert pulse == Schedule(
        "pulse", "ping", "{}", Every(90.0), None, None, "once", "allow", "default", False,
        pulse.source,
    )  # fmt: skip


def test_later_layers_change_single_keys() -> None:
    environ = {"MUSTERD_SCHEDULES__PULSE__ENABLED": "true"}
    found = loaded(TWO, "schedules.pulse.every_seconds=30", environ=environ).settings.schedules
    assert (found["pulse"].enabled, found["pulse"].rhythm) == (True, Every(30.0))


def test_a_schedule_is_shown_as_it_may_be_written(tmp_path: Path) -> None:
    first = loaded(TWO, "schedules.pulse.payload=[1]")
    assert as_tree(first, origin=True)["schedules"]["pulse"]["kind"]["value"] == "ping"
    assert as_tree(first, origin=True)["schedules"]["pulse"]["payload"] == {
        "value": [1],
        "origin": "--set",
    }
    again = tmp_path / "again.toml"
    again.write_text(as_text(first, origin=False))
    shown = load(again, {}, [], ABSENT).settings.schedules
    assert {name: one.rhythm for name, one in shown.items()} == {
        name: one.rhythm for name, one in first.settings.schedules.items()
    }


def test_a_schedule_may_be_called_as_the_default_tenant_is() -> None:
    found = loaded(TWO.replace("[schedules.pulse]", "[schedules.default]"))
    assert set(found.settings.schedules) == {"nightly", "default"}
    assert "[schedules.default]" in as_text(found, origin=False)


def test_a_target_that_no_store_could_keep_is_refused() -> None:
    with pytest.raises(UnsoundSettings) as caught:
        loaded(TWO.replace('target = "reports"', 'target = "a\\u0000b"'))
    (fault,) = caught.value.faults
    assert (fault.line, fault.key) == (7, "schedules.nightly.target")
