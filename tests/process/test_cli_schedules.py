"""Schedules on the command line, with no daemon about."""

from pathlib import Path

import pytest

from tests.support.command import Home

TOML = """
[schedules.nightly]
kind = "report"
cron = "30 2 * * *"
timezone = "Europe/Berlin"
payload = { scope = "all" }
target = "reports"
overlap = "skip"
[schedules.pulse]
kind = "noop"
every_seconds = 90
"""


@pytest.fixture
def config(tmp_path: Path) -> tuple[str, str]:
    file = tmp_path / "musterd.toml"
    file.write_text(TOML)
    return "--config", str(file)


def test_a_schedule_is_shown_run_paused_and_resumed(machine: Home, config: tuple[str, str]) -> None:
    machine.call("db", "migrate", *config)
    nightly, pulse = machine.call("schedules", "--json", *config).lines
    assert (nightly["name"], nightly["cron"], nightly["fired"]) == ("nightly", "30 2 * * *", 0)
    assert len(nightly["next"]) == 3
    assert 0 < pulse["seconds_until_next"] <= 90
    made = machine.call("schedules", "run-now", "nightly", "--json", *config).json
    job = machine.job(made["job_id"])
    assert (job["kind"], job["payload"], job["target"]) == ("report", {"scope": "all"}, "reports")
    said = machine.call("schedules", "pause", "nightly", *config).out
    assert said == "schedule nightly is paused\n"
    assert machine.call("schedules", "pause", "nightly", "--json", *config).json == {
        "schedule": "nightly", "paused": True, "changed": False,
    }  # fmt: skip
    head, first, _ = machine.call("schedules", *config).out.splitlines()
    assert head.split()[:2] == ["schedule", "kind"]
    assert "30 2 * * * Europe/Berlin" in first
    assert f"{made['job_id']} queued" in first
    assert "paused" in first
    assert "running" in machine.call("schedules", "resume", "nightly", *config).out


def test_what_is_not_there_is_guessed(home: Home, config: tuple[str, str]) -> None:
    done = home.call("schedules", "run-now", "nihgtly", *config)
    assert done.code == 3
    assert "did you mean nightly?" in done.err
    done = home.call("schedules", "run-now", "pulse", *config, "--set", "schedules.pulse.kind=nop")
    assert done.code == 3
    assert "did you mean noop?" in done.err
    assert home.call("schedules").out.startswith("there are no schedules")


def test_a_kind_that_the_catalog_lacks_is_a_fault(home: Home, config: tuple[str, str]) -> None:
    for verb in (("config", "check"), ("run",)):
        done = home.call(*verb, *config, "--set", "schedules.pulse.kind=nop")
        assert done.code == 78
        assert '--set: schedules.pulse.kind: found "nop", wanted a kind of the catalog' in done.err
