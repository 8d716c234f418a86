"""Command kinds: nothing of a job outlives it, whichever way it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from musterd.workers.runners.command import CommandRunner
from musterd.workers.runners.results import AnswerLimits
from tests.runners.test_command import LIMITS, VARIABLES, outcome_of, shell
from tests.support.assignments import Given
from tests.support.children import has_gone, is_alive, lines_in

ROOT = Path(__file__).resolve().parents[2]


async def cancelled(job: Given, note: Path, limits: AnswerLimits = LIMITS) -> float:
    """Runs the job, cancels it once it has written a line, says how long its end took."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(CommandRunner(limits, VARIABLES).run, job.assignment)
        await lines_in(note, 1)
        nursery.cancel_scope.cancel()
        began = trio.current_time()
    return trio.current_time() - began


async def test_a_cancelled_program_may_clean_up(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = f"trap 'echo cleaned >> {note}; exit' TERM; echo $$ > {note}; sleep 60 & wait"
    await cancelled(shell(script), note)
    pid, cleaned = note.read_text().split()
    assert cleaned == "cleaned"
    assert not is_alive(int(pid))


async def test_a_deaf_one_is_killed_after_the_grace(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = f"trap '' TERM; echo $$ > {note}; while :; do sleep 0.1; done"
    took_seconds = await cancelled(shell(script, grace_seconds=0.2), note)
    assert 0.2 <= took_seconds < 5
    assert not is_alive(int(note.read_text()))


async def test_one_that_writes_much_at_its_end_is_not_blocked(tmp_path: Path) -> None:
    note = tmp_path / "note"
    end = f"head -c 3000000 /dev/zero >&2; echo cleaned >> {note}; exit"
    await cancelled(shell(f"trap '{end}' TERM; echo up > {note}; sleep 60 & wait"), note)
    assert note.read_text() == "up\ncleaned\n"


async def test_the_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    note = tmp_path / "note"
    job = shell(f"sleep 60 & echo $! > {note}; sleep 60", grace_seconds=0.1)
    with trio.move_on_after(0.5) as limit:
        await CommandRunner(LIMITS, VARIABLES).run(job.assignment)
    assert limit.cancelled_caught
    assert not is_alive(int(note.read_text()))


async def test_children_left_behind_end_with_a_success(tmp_path: Path) -> None:
    note = tmp_path / "note"
    outcome = await outcome_of(shell(f"(sleep 60 & echo $! > {note}); echo 1"))
    assert outcome.result == "1"
    assert not is_alive(int(note.read_text()))


async def test_one_that_leaves_its_group_with_our_pipes_does_not_hold_the_job(
    tmp_path: Path,
) -> None:
    note = tmp_path / "note"
    leaves = f"setsid sh -c 'echo $$ > {note}; exec sleep 60' &"
    script = f"{leaves} while ! [ -s {note} ]; do :; done; echo 1"
    outcome = await outcome_of(shell(script))
    assert outcome.result == "1"
    os.kill(int(note.read_text()), signal.SIGKILL)  # nobody here adopts orphans
    await has_gone(int(note.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a parent's death")
async def test_the_program_dies_with_a_daemon_that_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = f"""
import trio
from tests.runners.test_command import LIMITS, VARIABLES, shell
from musterd.workers.runners.command import CommandRunner
job = shell("trap '' TERM; echo $$ > {note}; while :; do read line; done < /dev/zero")
trio.run(CommandRunner(LIMITS, VARIABLES).run, job.assignment)
"""
    daemon = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)  # noqa: ASYNC220 - brief
    try:
        pid = int((await lines_in(note, 1))[0])
        assert is_alive(pid)
    finally:
        daemon.kill()
        daemon.wait()
    with trio.fail_after(5):
        await has_gone(pid)
