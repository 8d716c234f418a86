"""Real daemons whose jobs go, on both engines: the file first, then the job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from musterd.console.output import Exit
from tests.support.command import Home, eventually

SHORT = (
    *("--set", "retention.stale_after_hours=0.0005"),  # 1.8 s
    *("--set", "retention.delete_after_hours=0.001"),
)


@pytest.fixture
def home(machine: Home) -> Home:
    return machine


def test_a_job_is_written_down_and_gone(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    with home.daemon(*SHORT, "--set", f"retention.archive={file}"):
        made = home.call("enqueue", "report", "--payload", '{"x": 1}', "--wait", "--json").json
        job_id = str(made["id"])
        eventually(lambda: home.call("job", job_id).code == Exit.UNKNOWN, seconds=20)
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["id"], line["state"], line["payload"]) == (made["id"], "succeeded", {"x": 1})
    assert line["stale_at"] is not None


def test_a_daemon_says_that_its_archive_cannot_be_written(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "none" / "old.jsonl"
    with home.daemon(*SHORT, "--set", f"retention.archive={file}") as daemon:
        done = home.call("enqueue", "report", "--wait")
        assert done.code == Exit.DONE
        daemon.wait_for_line("archive cannot be written")
        assert (
            "TROUBLE no job of default is deleted"
            in home.call("status", "--set", daemon.listen).out
        )
        file.parent.mkdir()
        eventually(lambda: home.call("job", "1").code == Exit.UNKNOWN, seconds=20)
    assert len(file.read_text().splitlines()) == 1


def test_a_hook_that_is_not_there_is_named_before_it_is_needed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text("def deleted(job):\n    pass\n")
    words = ("--set", f'catalog.python_path=["{tmp_path}"]')
    good = home.call("config", "check", *words, "--set", "retention.on_delete=ops:deleted")
    assert good.code == Exit.DONE, good
    bad = home.call("config", "check", *words, "--set", "retention.on_delete=ops:deletd")
    assert bad.code == Exit.CONFIGURATION
    assert "--set: retention.on_delete: ops (" in bad.err
    assert "did you mean ops:deleted?" in bad.err
