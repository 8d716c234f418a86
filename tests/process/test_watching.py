"""`musterd run --watch`: a daemon that follows its files."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Home

KINDS = """
[kinds.hello]
python = "hello:hello"
[kinds.inside]
python = "hello:hello"
isolation = "thread"
"""


def write(folder: Path, said: str) -> None:
    (folder / "hello.py").write_text(f"def hello(job):\n    return {said!r}\n")


def test_changed_files_are_followed_by_a_reload(home: Home, tmp_path: Path) -> None:
    write(tmp_path, "first")
    (tmp_path / "kinds.toml").write_text(KINDS)
    with_kinds = ("--set", f'catalog.paths=["{tmp_path}/kinds.toml"]')

    def said() -> str:
        done = home.call("enqueue", "hello", "--wait", "--json", *with_kinds)
        return str(done.json["result"])

    with home.daemon("--watch", *with_kinds) as daemon:
        daemon.wait_for_line("event=watching")
        daemon.wait_until_ready()
        assert said() == "first"
        write(tmp_path, "second, and longer")
        line = daemon.wait_for_line('event="files changed"')
        assert f"files={tmp_path}/hello.py" in line
        assert "kinds=inside" in daemon.wait_for_line('event="needs a restart"')
        daemon.wait_for_line("event=reloaded generation=2")
        assert said() == "second, and longer"
        (tmp_path / "kinds.toml").write_text(KINDS + "[kinds.hello")
        daemon.wait_for_line('event="not reloaded"')
        (tmp_path / "kinds.toml").write_text(KINDS + "[kinds.late]\nduration_ms = 1\n")
        daemon.wait_for_line('event="kind added" kind=late')
        daemon.wait_for_line("event=reloaded generation=3")
