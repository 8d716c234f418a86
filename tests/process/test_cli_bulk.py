"""Bulk actions from the command line: what is said first, who is asked, what is then done."""

import os
import select
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.command import COMMAND, Home, eventually


@pytest.fixture
def home(machine: Home) -> Home:
    return machine


def states(home: Home) -> Counter[str]:
    found = home.call("status", "--json").json["counts"]["jobs"]
    return Counter({state: number for state, number in found.items() if number})


def test_first_it_says_what_is_meant_and_then_it_is_done(home: Home) -> None:
    home.call("enqueue", "noop", "--count", "7")
    home.call("enqueue", "report", "--count", "3")
    where = ("--where", "state=queued,kind=noop")
    table = [
        "7 jobs match",
        "state   kind  jobs  ids",
        "queued  noop     7  1, 2, 3, 4, 5, …",
    ]
    dry = home.call("cancel", *where, "--dry-run")
    assert dry.code == 0
    assert dry.out.splitlines() == [*table, "nothing was done: this was a dry run"]
    unasked = home.call("cancel", *where)
    assert (unasked.code, unasked.out.splitlines()) == (2, table)
    assert unasked.err == (
        "musterd: this would cancel 7 jobs; nothing was done\n"
        "  add --yes to do it, or --dry-run to only count\n"
    )
    assert states(home) == {"queued": 10}
    some = home.call("pause", *where, "--limit", "2", "--yes")
    assert some.out.splitlines()[-1] == "2 jobs paused"
    done = home.call("cancel", "--where", "kind=noop", "--where", "kind=other", "--yes", "--json")
    assert done.code == 0
    assert done.json == {
        "action": "cancel", "dry_run": False, "matched": 7, "matched_exact": True,
        "groups": [
            {"state": "queued", "kind": "noop", "count": 5, "first_ids": [3, 4, 5, 6, 7]},
            {"state": "paused", "kind": "noop", "count": 2, "first_ids": [1, 2]},
        ],
        "done": 7, "requested": 0, "skipped": {"changed": 0, "not_allowed": 0, "busy": 0},
        "interrupted": False,
    }  # fmt: skip
    assert states(home) == {"queued": 3, "canceled": 7}
    nothing = home.call("cancel", *where)
    assert (nothing.code, nothing.out) == (0, "no job matches\nnothing to do\n")


def test_only_old_ones(home: Home) -> None:
    home.call("enqueue", "noop", "--hold")
    assert home.call("release", "--older", "1h", "--yes").out == "no job matches\nnothing to do\n"
    assert home.call("release", "--older", "1ms", "--yes").out.endswith("1 job released\n")
    assert states(home) == {"queued": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cancel", "1", "--where", "kind=a"), "not both"),
        (("cancel", "1", "--dry-run"), "not both"),
        (("cancel",), "give the ID of a job, or a filter"),
        (("cancel", "--yes"), "give the ID of a job, or a filter"),
        (("cancel", "--where", "sate=failed"), "found 'sate=failed', wanted state=…, kind=…"),
        (("cancel", "--where", "kind="), "--where kind=: found no value"),
        (("cancel", "--where", "state=failed"), "cancel wants one of pending, queued"),
        (("resume", "--where", "state=faild"), "resume wants one of paused, failed"),
        (("resume", "--where", "priority=high"), "a whole number, -32768 to 32767"),
        (("resume", "--older", "soon"), "'soon' is not a delay"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = Home(tmp_path).call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, "queued"), ("y\n", 0, "canceled")])
def test_on_a_terminal_it_asks(tmp_path: Path, answer: str, code: int, left: str) -> None:
    home = Home(tmp_path)
    home.call("enqueue", "noop", "--count", "3")
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*COMMAND, "cancel", "--where", "kind=noop"], env=home.environ() | {"NO_COLOR": "1"},
        stdin=theirs, stdout=theirs, stderr=theirs,
    ) as asking:  # fmt: skip
        try:
            assert "cancel 3 jobs?" in _read_until(ours, "[y/N]")
            os.write(ours, answer.encode())
            said = _read_until(ours, "nothing was done" if code else "3 jobs canceled")
            assert asking.wait(30) == code
        finally:
            asking.kill()
            os.close(ours)
            os.close(theirs)
    assert said
    assert states(home) == {left: 3}


def _read_until(terminal: int, words: str) -> str:
    said = ""
    while words not in said:
        assert select.select([terminal], [], [], 30)[0], f"no {words!r} in {said!r}"
        said += os.read(terminal, 4096).decode()
    return said


def test_interrupted_it_says_exactly_how_many_are_done(home: Home) -> None:
    for _ in range(3):
        home.call("enqueue", "noop", "--count", "10000")
    with subprocess.Popen(
        [*COMMAND, "cancel", "--where", "kind=noop", "--yes"], env=home.environ(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as acting:  # fmt: skip
        eventually(lambda: states(home)["canceled"] > 0)
        acting.send_signal(signal.SIGINT)
        out, complaint = acting.communicate(timeout=60)
    counted = states(home)["canceled"]
    assert (acting.returncode, 0 < counted < 30_000) == (1, True)
    assert out.decode().startswith("10,000+ jobs match (the table counts the first 10,000)\n")
    assert complaint.decode() == f"musterd: interrupted: {counted:,} of 10,000+ are done\n"
