"""What befalls the server: killed, its sessions ended, its connections and its disk used up, a
transaction that holds back its vacuum.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Generator
from random import Random
from typing import Any

import psycopg

from tests.faults.ground import DATABASE
from tests.faults.scene import Scene
from tests.faults.watching import within
from tests.support.narrow import fill
from tests.support.standby import send

SQUEEZED_SECONDS = (1.0, 3.0)
RECOVERY_SECONDS = 30.0
FULL_SECONDS = (2.0, 4.0)
HELD_SECONDS = (3.0, 6.0)
BACKENDS = """
    select pid from pg_stat_activity where backend_type = 'client backend' and datname = %s
    and pid <> pg_backend_pid() order by pid
"""
Session = psycopg.Connection[Any]


class ServerFaults:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._server = scene.ground.server

    def postmaster_kill(self, rng: Random) -> bool:
        """As a crash: it recovers, from what it has written."""
        self._scene.recorder.fault("store_away", how="postmaster_kill")
        self._server.stop_hard()
        self._scene.recorder.fault("store_back")
        return True

    def backend_kill(self, rng: Random) -> bool:
        """One session dies; the server ends all others and recovers."""
        with self._session() as session:
            pid = self._pick(session, rng, "backend_kill")
            if pid is None:
                return False
            send(pid, signal.SIGKILL)
            was_ended = within(RECOVERY_SECONDS, lambda: not _answers(session))
        assert within(RECOVERY_SECONDS, self._server.answers), "the server does not come back"
        return was_ended

    def terminate(self, rng: Random) -> bool:
        """Ends one session, wherever in its talk it is."""
        with self._session() as session:
            pid = self._pick(session, rng, "terminate")
            row = session.execute("select pg_terminate_backend(%s)", [pid]).fetchone()
        return row == (True,)

    def connections(self, rng: Random) -> bool:
        """All are taken by somebody else; who loses his can't have another."""
        self._scene.recorder.fault("connections")
        until = time.monotonic() + rng.uniform(*SQUEEZED_SECONDS)
        with self._session() as session, contextlib.ExitStack() as taken:
            own = {session.info.backend_pid}
            was_full = False
            while time.monotonic() < until:
                was_full = self._take_all(taken, own) or was_full
                others = [pid for pid in _pids(session) if pid not in own]
                if others:
                    session.execute("select pg_terminate_backend(%s)", [rng.choice(others)])
                time.sleep(0.05)
        return was_full

    def snapshot(self, rng: Random) -> bool:
        """Somebody looks at the jobs, and forgets to end his transaction."""
        self._scene.recorder.fault("snapshot")
        with self._session() as session, held_snapshot(session):
            time.sleep(rng.uniform(*HELD_SECONDS))
        self._scene.recorder.fault("snapshot_over")
        return True

    def disk_full(self, rng: Random) -> bool:
        """Not a byte is left where the tables are; counts if the server has complained of it."""
        disk = self._scene.ground.disk
        assert disk is not None, "only root can make a disk that is full"
        said = self._server.log.count("No space left on device")
        self._scene.recorder.fault("disk_full")
        filler = disk / "filler"
        try:
            fill(filler)
            until = time.monotonic() + rng.uniform(*FULL_SECONDS)
            while time.monotonic() < until:
                time.sleep(0.2)
                fill(filler)
        finally:
            filler.unlink()
        self._scene.recorder.fault("disk_full_over")
        return self._server.log.count("No space left on device") > said

    def _pick(self, session: Session, rng: Random, fault: str) -> int | None:
        """Somebody else's session, which is about to end; None = there is none."""
        backends = _pids(session)
        if not backends:
            return None
        self._scene.recorder.fault(fault)
        return rng.choice(backends)

    def _take_all(self, taken: contextlib.ExitStack, own: set[int]) -> bool:
        """Whether none is left."""
        while True:
            try:
                session = taken.enter_context(contextlib.closing(self._connect()))
            except psycopg.OperationalError as error:
                return "too many clients" in str(error)
            own.add(session.info.backend_pid)

    def _connect(self) -> Session:
        return psycopg.connect(self._server.dsn(DATABASE), autocommit=True, connect_timeout=5)

    @contextlib.contextmanager
    def _session(self) -> Generator[Session]:
        with self._connect() as session:
            yield session


@contextlib.contextmanager
def held_snapshot(session: Session) -> Generator[None]:
    """While the block lasts nothing that is deleted or changed can be cleared away."""
    session.execute("begin isolation level repeatable read")
    session.execute("select count(*) from musterd.jobs")
    yield
    session.execute("rollback")


def _answers(session: Session) -> bool:
    try:
        session.execute("select")
    except psycopg.OperationalError:
        return False
    return True


def _pids(session: Session) -> list[int]:
    return [pid for (pid,) in session.execute(BACKENDS, [DATABASE])]
