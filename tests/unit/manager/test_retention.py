"""The pieces of retention that decide, and the file that jobs are written down in."""

import json
import os
import threading
from pathlib import Path

import pytest

from musterd.catalog.kinds import Catalog
from musterd.config.retention import Ages as KindAges
from musterd.manager.duties.retention import (
    ArchiveFailed,
    address_of,
    ages_of,
    append_lines,
    keeper_of,
    pause_seconds,
)
from musterd.store.lifecycle import JobState
from tests.support.stage import kind, settings_with

HOUR = 3_600.0
S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED


def test_ages_are_those_of_state_and_kind() -> None:
    retention = settings_with(retention__stale_after_hours=2, retention__canceled="{}").retention
    own = KindAges(stale_after_hours=1, delete_after_hours=3)
    catalog = Catalog([kind("plain"), kind("short", retention=own)])
    stale = ages_of(retention, catalog, "stale_seconds")
    assert stale.by_state == dict.fromkeys((S, F, C), 2 * HOUR)
    assert stale.by_kind == {"short": dict.fromkeys((S, F, C), HOUR)}
    assert (stale.of(F, "short"), stale.of(F, "plain"), stale.of(F, "unheard")) == (
        HOUR, 2 * HOUR, 2 * HOUR,
    )  # fmt: skip
    assert stale.shortest == HOUR
    assert ages_of(retention, catalog, "delete_seconds").of(C, "short") == 3 * HOUR


def test_without_ages_there_is_no_shortest_one() -> None:
    retention = settings_with(
        retention__stale_after_hours=0, retention__delete_after_hours=0
    ).retention
    assert ages_of(retention, Catalog([]), "stale_seconds").shortest is None


@pytest.mark.parametrize(
    ("shortest", "quiet", "pause"),
    [
        (None, 0, 60), (None, 4, 960),
        (168 * HOUR, 0, 60), (168 * HOUR, 4, 960),
        (HOUR, 0, 60), (HOUR, 4, 360), (100, 0, 10), (1, 0, 1), (0.001, 4, 1),
    ],
)  # fmt: skip
def test_looks_are_frequent_enough_for_the_shortest_age(
    shortest: float | None, quiet: int, pause: float
) -> None:
    assert pause_seconds(60, shortest, quiet) == pause


def test_where_messages_for_a_hook_go() -> None:
    assert address_of("") is None
    assert address_of("https://a.example/") == "https://a.example/"
    assert address_of("shop:gone") == "python:shop:gone"


def test_jobs_are_kept_only_where_somebody_wants_them() -> None:
    def keeper(**changes: object) -> object:
        named = {f"retention__{key}": value for key, value in changes.items()}
        return keeper_of(settings_with(**named).retention, "acme", lambda: Catalog([]))

    assert keeper() is None
    assert keeper(on_stale="shop:a") is None
    for changes in ({"archive": "table"}, {"archive": "/a/b.jsonl"}, {"on_delete": "shop:a"}):
        assert keeper(**changes) is not None


def test_lines_are_appended_to_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    append_lines(file, ["1", "2"])
    append_lines(file, ["3"])
    assert file.read_text() == "1\n2\n3\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_line_that_a_crash_cut_off_is_ended_first(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text('{"id": 1}\n{"id')
    append_lines(file, ['{"id": 2}'])
    assert file.read_text() == '{"id": 1}\n{"id\n{"id": 2}\n'


def test_a_batch_that_does_not_fit_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "old.jsonl"
    append_lines(file, ["1"])
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        write(descriptor, bytes(data)[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ArchiveFailed, match="No space left"):
        append_lines(file, ["2222"])
    assert file.read_text() == "1\n"


@pytest.mark.parametrize("what", ["folder", "missing", "pipe"])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, what: str) -> None:
    place = tmp_path / "old.jsonl"
    if what == "folder":
        place.mkdir()
    elif what == "pipe":
        os.mkfifo(place)
    else:
        place = tmp_path / "none" / "old.jsonl"
    with pytest.raises(ArchiveFailed, match=str(place)):
        append_lines(place, ["1"])


def test_writers_at_once_keep_their_lines_whole(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"

    def write(number: int) -> None:
        for _ in range(20):
            append_lines(file, [json.dumps({"by": number, "text": "x" * 5_000})] * 3)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = [json.loads(line)["by"] for line in file.read_text().splitlines()]
    assert len(found) == 4 * 20 * 3
    assert all(found[first] == found[first + 2] for first in range(0, len(found), 3))
