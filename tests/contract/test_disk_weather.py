"""Files that can no longer be written, or whose disk is full: weather, with a word of its own. A
server of PostgreSQL calls the first a lack of rights, as it would a role's; SQLite an error of I/O.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from musterd import Client
from musterd.console.output import Exit
from musterd.store.errors import StoreUnavailable
from tests.fix_postgres import FreshDatabase
from tests.support.command import Home
from tests.support.narrow import disk


@contextmanager
def closed(file: Path) -> Generator[None]:
    """As on a disk that was mounted anew, to be read alone: nobody may open the file to write."""
    mode = file.stat().st_mode
    file.chmod(0o400)
    try:
        yield
    finally:
        file.chmod(mode)


def file_of(url: str) -> Path:
    """Of the table that a new job is written to."""
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(
            "select current_setting('data_directory') || '/' || pg_relation_filepath(oid)"
            " from pg_class where relname = 'job_rows' and relkind = 'r'"
        ).fetchone()
    assert row is not None
    return Path(row[0])


def test_files_that_cannot_be_written_are_weather(
    fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    url = fresh_database()
    assert Home(tmp_path, url).call("db", "migrate").code == 0
    with closed(file_of(url)), Client(url) as client:
        with pytest.raises(StoreUnavailable) as raised:
            client.enqueue("noop")
        assert raised.value.trouble == "read_only"
        assert "lacks a right" not in str(raised.value)


@pytest.mark.parametrize("trouble", ["disk_full", "read_only"])
def test_a_file_on_such_a_disk_has_weather(trouble: str) -> None:
    with disk(10) as own:
        home = Home(own.folder / "state")
        assert home.call("enqueue", "noop").code == 0  # closes the file behind it
        with own.full() if trouble == "disk_full" else own.read_only():
            done = home.call("enqueue", "noop")
            assert done.code == Exit.UNAVAILABLE, done.err
            with pytest.raises(StoreUnavailable) as raised:
                enqueue(f"sqlite:///{home.folder}/musterd.db")
    assert raised.value.trouble == trouble


def enqueue(url: str) -> None:
    with Client(url) as client:
        client.enqueue("noop")
