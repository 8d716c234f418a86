"""A process group ends whole, whichever way, in bounded time, and leaves nothing."""

import os
import signal
from pathlib import Path

import pytest
import trio

from musterd.workers.runners.process_group import ProcessGroup, Start
from tests.support.children import has_gone, is_alive, lines_in

ENVIRONMENT = {"PATH": os.environ["PATH"]}
PATIENCE_SECONDS = 10.0


def shell(script: str, *arguments: Path, grace_seconds: float = 5.0) -> ProcessGroup:
    argv = ("/bin/sh", "-c", script, "sh", *map(str, arguments))
    return ProcessGroup(Start(argv, ENVIRONMENT, grace_seconds))


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -9)])
async def test_the_status_is_known_after_the_end(script: str, status: int) -> None:
    async with shell(script) as group:
        await group.wait()
        assert group.status is None  # not reaped yet: its number is still its own
    assert group.status == status


async def test_the_wait_works_without_pidfds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    async with shell("sleep 0.05; exit 4") as group:
        await group.wait()
    assert group.status == 4


def test_a_program_that_is_missing_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        ProcessGroup(Start(("/nonexistent/program",), ENVIRONMENT, 1.0))


async def test_leaving_the_block_early_asks_it_to_end(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = "trap 'echo term >> $1; exit 7' TERM; echo up > $1; sleep 60 & wait"
    async with shell(script, note) as group:
        await lines_in(note, 1)
    assert group.status == 7
    assert note.read_text() == "up\nterm\n"


async def test_what_ignores_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = "trap '' TERM; echo up > $1; while :; do sleep 0.1; done"
    began = trio.current_time()
    async with shell(script, note, grace_seconds=0.2) as group:
        await lines_in(note, 1)
    assert group.status == -signal.SIGKILL
    assert 0.2 <= trio.current_time() - began < PATIENCE_SECONDS


async def test_what_is_stopped_is_killed_too(tmp_path: Path) -> None:
    note = tmp_path / "note"
    async with shell("echo up > $1; sleep 60", note, grace_seconds=0.05) as group:
        await lines_in(note, 1)
        os.kill(group.pid, signal.SIGSTOP)
    assert group.status in {-signal.SIGTERM, -signal.SIGKILL}


async def test_children_left_behind_are_killed_after_a_success(tmp_path: Path) -> None:
    note = tmp_path / "note"
    async with shell("(trap '' TERM HUP; sleep 60) & echo $! > $1; exit 0", note) as group:
        await group.wait()
        child = int(note.read_text())
        assert is_alive(child)
    assert group.status == 0
    assert not is_alive(child)


async def test_a_cancel_gets_out_only_when_all_have_ended(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = "trap 'sleep 0.1; echo done >> $1; exit 0' TERM; sleep 60 & echo $! > $1; wait; wait"
    group = shell(script, note)
    with trio.CancelScope() as scope:
        async with group:
            await lines_in(note, 1)
            scope.cancel()
            await group.wait()
    assert scope.cancelled_caught
    assert group.status == 0
    child, done = note.read_text().split()
    assert done == "done"
    assert not is_alive(int(child))


async def test_kill_asks_nobody(tmp_path: Path) -> None:
    note = tmp_path / "note"
    async with shell("trap 'echo term >> $1' TERM; echo up > $1; sleep 60", note) as group:
        await lines_in(note, 1)
        group.kill()
        await group.wait()
    assert group.status == -signal.SIGKILL
    assert note.read_text() == "up\n"


async def test_signals_after_the_end_reach_nobody() -> None:
    async with shell("exit 0") as group:
        await group.wait()
    group.terminate()
    group.kill()
    await group.stop()
    assert group.status == 0


async def test_it_inherits_no_file_and_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "canary")
    note = tmp_path / "note"
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        script = "{ ls /proc/$$/fd | wc -l; env; } > $1.part; mv $1.part $1"
        async with shell(script, note) as group:
            await group.wait()
    files, *variables = note.read_text().splitlines()
    assert int(files) <= 5  # the standard three, and the shell's own while it redirects
    assert not any("canary" in line for line in variables)


async def test_it_leads_a_session_of_its_own() -> None:
    async with shell("sleep 60", grace_seconds=0.1) as group:
        assert os.getsid(group.pid) == os.getpgid(group.pid) == group.pid
    await has_gone(group.pid)
