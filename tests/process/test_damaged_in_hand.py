"""A row that somebody changed while its daemon had it in hand, and died."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from musterd import Client
from tests.support.command import Home, eventually, kinds_in

KINDS = """
[kinds.waits]
command = ["sh", "-c", "while ! [ -e {go} ]; do sleep 0.05; done"]
"""


def test_it_fails_alone_and_is_named_while_the_others_begin_anew(
    home: Home, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    options = (*kinds_in(tmp_path, KINDS.format(go=go)), "--set", "workers.default_count=3")
    file = home.folder / "musterd.db"
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        with Client(f"sqlite:///{file.resolve()}") as client:
            first, damaged, last = (client.enqueue("waits") for _ in range(3))
        eventually(lambda: all(home.job(each)["state"] == "running" for each in (first, last)))
        eventually(lambda: home.job(damaged)["state"] == "running")
        daemon.process.kill()
        daemon.end()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("pragma ignore_check_constraints = on")
        connection.execute("update job_rows set attempt = 'many' where id = ?", (damaged,))
    go.touch()
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        eventually(lambda: all(home.job(each)["state"] == "succeeded" for each in (first, last)))
        line = daemon.wait_for_line(f"lease expired.*job_id={damaged} ")
        assert "state=failed" in line
        assert "attempt is 'many', wanted 0 to 1999999999" in line
        job = home.job(damaged)
        assert (job["state"], job["error"]["type"]) == ("failed", "row_damaged")
        assert daemon.process.poll() is None
