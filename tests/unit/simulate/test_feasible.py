"""Promises that schedules cannot keep are told with the number of workers that would."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.load import load
from musterd.console.simulate.feasible import Unkept, unkept_promises
from tests.support.stage import kind

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)


def found(
    tmp_path: Path, count: int, seconds: float, promised: float, *changes: str
) -> list[Unkept]:
    """Of so many schedules at three in the night."""
    one = '[schedules.n{}]\nkind = "report"\ncron = "0 3 * * *"\n'
    file = tmp_path / "musterd.toml"
    file.write_text("".join(one.format(number) for number in range(count)))
    settings = load(file, {}, list(changes)).settings
    report = attrs.evolve(kind("report", round(seconds * 1000)), max_wait_seconds=promised)
    return list(unkept_promises(settings, Catalog([report]), NOW.timestamp))


def test_a_bound_that_breaks_a_promise_is_named(tmp_path: Path) -> None:
    (said,) = found(tmp_path, 40, 3.0, 9.5)
    assert (said.kind, said.workers) == ("report", 13)
    assert said.slot == datetime(2026, 11, 21, 3, tzinfo=UTC)
    assert said.words.startswith(
        "kinds.report promises that jobs start within 9.5 s: a job scheduled for"
        " 2026-11-21 03:00:00Z would be "
    )
    assert said.words.endswith(" late; it takes 13 workers, and workers.max_count is 8")
    assert found(tmp_path, 40, 3.0, 9.5, "workers.max_count=13") == []
    (said,) = found(tmp_path, 40, 3.0, 9.5, "limits.max_running=5")
    assert said.words.endswith("limits.max_running is 5")


def test_what_no_larger_crew_keeps_is_told_as_that(tmp_path: Path) -> None:
    (said,) = found(tmp_path, 5, 3.0, 0.1)
    assert said.workers is None
    assert said.words.endswith("raise workers.default_count, or lower workers.scale_interval_ms")


def test_without_a_promise_or_a_slot_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert found(tmp_path, 40, 3.0, 0.0) == []
    assert found(tmp_path, 0, 3.0, 1.0) == []
    assert found(tmp_path, 8, 3.0, 1.0) == []
