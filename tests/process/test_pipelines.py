"""A real daemon that is killed between every two steps of a pipeline: no phase that the store has
as finished runs again, on either engine.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

import attrs
import psycopg
import pytest

from tests.support.command import SHORT_DUTIES, Daemon, Home, eventually

NAMES = ("download", "process", "upload")
PHASE = """
[[kinds.video.phases]]
name = "{name}"
command = ["/bin/sh", "-c", "echo $MUSTERD_PHASE >> {runs}; sleep 0.5; echo '\\"{name}\\"'"]
"""
CATALOG = """
[kinds.video]
retry = {max_retries = 50, base_seconds = 0.01}
"""
FINISHED = "select name from {schema}job_phases where state = 'succeeded'"
# What a daemon that is gone had asked for would still be done once it has its lock.
ABANDONED = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'"
HELD_SECONDS = 1.0  # long enough for a phase to end


@attrs.frozen
class Scene:
    """A store, the command to serve it, and what its phases have written."""

    home: Home
    options: tuple[str, ...]
    runs_file: Path
    finished: Callable[[], set[str]]
    frozen: Callable[[], AbstractContextManager[None]]  # nobody writes about phases meanwhile

    def kill(self, daemon: Daemon, moment: str) -> None:
        """At once, or when the phase has ended and its end is on its way to the store."""
        with nullcontext() if moment == "begun" else self.frozen():
            if moment == "ended":
                time.sleep(HELD_SECONDS)
            daemon.process.kill()
            daemon.process.wait()

    def wait_for_a_run_of(self, name: str) -> None:
        before = self.runs()[name]
        eventually(lambda: self.runs()[name] > before, 30)

    def runs(self) -> Counter[str]:
        text = self.runs_file.read_text() if self.runs_file.exists() else ""
        return Counter(text.split())


@pytest.fixture(params=["sqlite", "postgresql"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    runs_file = tmp_path / "runs"
    text = CATALOG + "".join(PHASE.format(name=name, runs=runs_file) for name in NAMES)
    (tmp_path / "kinds.toml").write_text(text)
    paths = f"catalog.paths={[str(tmp_path / 'kinds.toml')]}"
    options = ("--set", paths, "--set", "workers.lease_timeout_seconds=2", *SHORT_DUTIES)
    if request.param == "sqlite":
        home = Home(tmp_path / "state")
        database = tmp_path / "state" / "musterd.db"
        return Scene(
            home, options, runs_file, lambda: _finished_in_sqlite(database),
            lambda: _frozen_sqlite(database),
        )  # fmt: skip
    url: str = request.getfixturevalue("fresh_database")()
    home = Home(tmp_path / "state", url)
    return Scene(
        home, options, runs_file, lambda: _finished_in_postgres(url), lambda: _frozen_postgres(url)
    )


def _finished_in_sqlite(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as conn:
        return {row[0] for row in conn.execute(FINISHED.format(schema=""))}


@contextmanager
def _frozen_sqlite(database: Path) -> Generator[None]:
    with closing(sqlite3.connect(database, isolation_level=None, timeout=20)) as conn:
        conn.execute("begin immediate")
        yield
        conn.execute("rollback")


def _finished_in_postgres(url: str) -> set[str]:
    with psycopg.connect(url) as conn:
        return {row[0] for row in conn.execute(FINISHED.format(schema="musterd.").encode())}


@contextmanager
def _frozen_postgres(url: str) -> Generator[None]:
    with psycopg.connect(url) as conn:
        conn.execute("lock table musterd.job_phases in exclusive mode")
        yield
        conn.execute(ABANDONED)
        conn.rollback()


@pytest.mark.parametrize("moment", ["begun", "ended"])
def test_no_finished_phase_runs_again_after_a_kill(scene: Scene, moment: str) -> None:
    """For each phase the daemon is killed once: while it runs, or when it has ended and nothing of
    that is in the store yet (of the last phase: before its job is settled).
    """
    scene.home.call("db", "migrate")
    made = scene.home.call("enqueue", "video", "--json", *scene.options)
    job_id = made.json["id"]
    assert [phase["state"] for phase in made.json["progress"]["phases"]] == ["pending"] * 3
    kills: list[tuple[set[str], Counter[str]]] = []
    for name in NAMES:
        with scene.home.daemon(*scene.options) as daemon:
            scene.wait_for_a_run_of(name)
            scene.kill(daemon, moment)
        kills.append((scene.finished(), scene.runs()))
    with scene.home.daemon(*scene.options) as daemon:
        eventually(lambda: scene.home.job(job_id)["state"] == "succeeded", 30)
        daemon.process.terminate()
        daemon.end()
    last = scene.runs()
    for finished, runs in kills:
        assert {name: last[name] for name in finished} == {name: runs[name] for name in finished}
    job = scene.home.job(job_id)
    assert job["result"] == "upload"
    assert [phase["result"] for phase in job["progress"]["phases"]] == [*NAMES]
    assert [sorted(finished) for finished, _ in kills] == [
        sorted(NAMES[:count]) for count in range(len(NAMES))
    ]
    assert last == dict.fromkeys(NAMES, 2)
