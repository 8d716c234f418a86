"""Deleting jobs from the command line."""

import json
from pathlib import Path

from tests.support.command import Home


def ended(home: Home, number: int) -> None:
    """Jobs 1 to `number`, canceled."""
    home.call("enqueue", "report", "--payload", '{"n": 7}', "--count", str(number))
    home.call("cancel", *map(str, range(1, number + 1)))


def test_jobs_that_have_ended_are_deleted(home: Home) -> None:
    ended(home, 3)
    done = home.call("delete", "1", "3")
    assert (done.code, done.err) == (0, "")
    assert done.out == "job 1 deleted (it was canceled)\njob 3 deleted (it was canceled)\n"
    assert [job["id"] for job in home.call("jobs", "--json").lines] == [2]
    last = home.call("events", "--job", "1", "--json").lines[-1]
    assert last["type"] == "job.deleted"
    assert last["data"]["state"] == "canceled"
    assert "@" in last["data"]["by"]
    verified = home.call("verify")
    assert verified.code == 0, verified.out


def test_what_stays_is_said_with_what_to_do_first(home: Home) -> None:
    ended(home, 1)
    home.call("enqueue", "noop")
    refused = home.call("delete", "2")
    assert (refused.code, refused.out) == (4, "")
    assert refused.err == (
        "musterd: job 2 is queued: delete wants a job that is canceled, failed or succeeded;"
        " cancel it first\n"
    )
    mixed = home.call("delete", "9", "1", "--json")
    assert (mixed.code, mixed.err) == (3, "musterd: there is no job 9\n")
    assert mixed.lines == [
        {"id": 9, "deleted": False, "state_before": None, "obstacle": None},
        {"id": 1, "deleted": True, "state_before": "canceled", "obstacle": None},
    ]
    assert home.call("delete").code == 2
    assert home.call("delete", "0").code == 2


def test_the_archive_is_heeded(home: Home, tmp_path: Path) -> None:
    ended(home, 2)
    archive = tmp_path / "gone.jsonl"
    assert home.call("delete", "1", "--set", f"retention.archive={archive}").code == 0
    (line,) = archive.read_text().splitlines()
    assert (json.loads(line)["id"], json.loads(line)["payload"]) == (1, {"n": 7})
    away = home.call("delete", "2", "--set", f"retention.archive={tmp_path}/no/such.jsonl")
    assert away.code == 1
    assert "the archive cannot be written" in away.err
    assert home.job(2)["state"] == "canceled"
