"""Files of the embedded engine that are not what a daemon left: it says so, and touches nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Home


@pytest.fixture
def used(home: Home) -> Path:
    """A store whose daemon was killed, with jobs in it."""
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        assert home.call("enqueue", "noop", "--count", "2000", "--hold").code == 0
        daemon.process.kill()
        daemon.end()
    return home.folder / "musterd.db"


def test_a_killed_daemons_file_is_whole(home: Home, used: Path) -> None:
    assert used.exists()
    with home.daemon() as daemon:
        daemon.wait_until_ready()


def test_a_damaged_file_is_found_at_the_start(home: Home, used: Path) -> None:
    assert home.call("status").code in (0, 1)
    used.with_name("musterd.db-wal").write_bytes(b"not clean")  # as after a power cut
    content = bytearray(used.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    used.write_bytes(content)
    with home.daemon() as daemon:
        assert daemon.end() == 78
        said = daemon.wait_for_line("restore it from a backup|restore the file from a backup")
    assert "musterd.db" in said
    assert used.read_bytes() == bytes(content)


def test_an_emptied_file_is_refused(home: Home, used: Path) -> None:
    for file in home.folder.glob("musterd.db-*"):
        file.unlink()
    used.write_bytes(b"")
    with home.daemon() as daemon:
        assert daemon.end() == 78
        daemon.wait_for_line("the file is empty, and a daemon has worked on it")
    assert home.call("enqueue", "noop").code == 78
    assert used.stat().st_size == 0


def test_the_lock_is_taken_through_no_link(home: Home, tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_text("precious")
    assert home.call("enqueue", "noop").code == 0
    (home.folder / "musterd.db.lock").symlink_to(other)
    with home.daemon() as daemon:
        assert daemon.end() == 78
        daemon.wait_for_line("musterd.db.lock is a link")
    assert other.read_text() == "precious"


def test_damage_under_a_daemon_that_runs_is_told_of(home: Home, used: Path) -> None:
    """By a duty that reads the file beside the work: jobs go on as long as they can."""
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        daemon.process.terminate()
        assert daemon.end() == 0  # all is in the file now, nothing in its log
    with home.daemon("--set", "store.check_hours=0.0003") as daemon:
        daemon.wait_until_ready()
        daemon.wait_for_line("the store's file is sound")
        content = bytearray(used.read_bytes())
        page = 4096
        half = len(content) // (2 * page) * page
        with used.open("r+b") as file:
            file.seek(half)
            file.write(b"\xff" * (len(content) - half))
        said = daemon.wait_for_line("the store's file is damaged")
        assert "musterd.db" in said
        assert daemon.process.poll() is None
