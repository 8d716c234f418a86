"""The phases of a job, in the job object and in the report for people."""

from typing import Any, cast

import attrs

from musterd.store.lifecycle import JobState
from musterd.store.phases import PhaseRecord, PhaseState
from musterd.store.report import job_object, report_text
from tests.unit.report.test_report import at, running

DONE = PhaseRecord("download", PhaseState.SUCCEEDED, 100.0, '{"a": 1}', 1, at(1), at(2.5))
NOW = PhaseRecord("process", PhaseState.RUNNING, 24.6, None, 2, at(3))
LATER = PhaseRecord("up\nload", PhaseState.PENDING, 0.0)
JOB = attrs.evolve(running(), progress=41.5, progress_note="frame 25", phases=(DONE, NOW, LATER))


def test_programs_see_all_of_each_phase() -> None:
    progress = cast(dict[str, Any], job_object(JOB, "default", 4)["progress"])
    assert (progress["overall"], progress["phase"], progress["note"]) == (42, "process", "frame 25")
    first, second, third = progress["phases"]
    assert first == {
        "name": "download",
        "state": "succeeded",
        "progress": 100,
        "result": {"a": 1},
        "attempts": 1,
        "started_at": "2026-01-02T03:04:06.678901Z",
        "finished_at": "2026-01-02T03:04:08.178901Z",
    }
    assert (second["progress"], second["result"], second["finished_at"]) == (25, None, None)
    assert (third["attempts"], third["started_at"]) == (0, None)


def test_people_see_a_table() -> None:
    lines = report_text(JOB, at(5)).splitlines()
    said = "progress 42 %, phase process, frame 25"
    assert said in [" ".join(line.split()) for line in lines]
    head = next(number for number, line in enumerate(lines) if line.startswith("phase "))
    assert [line.split() for line in lines[head : head + 4]] == [
        ["phase", "state", "progress", "attempts", "started", "ran"],
        ["download", "succeeded", "100", "%", "1", "03:04:06.678Z", "1.5", "s"],
        ["process", "running", "25", "%", "2", "03:04:08.678Z", "2.0", "s"],
        ["up\\nload", "pending", "0", "%", "0", "-", "-"],
    ]


def test_a_job_without_phases_has_no_table() -> None:
    plain = attrs.evolve(JOB, phases=(), state=JobState.RUNNING)
    assert "phase" not in report_text(plain, at(5))
