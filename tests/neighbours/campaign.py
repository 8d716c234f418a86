"""Rounds of hostility against one daemon. After each: the daemon is the same one, its loop has
never stood still, its memory is bounded, and each innocent job has succeeded once.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from random import Random
from typing import Self

import attrs
import psycopg

from musterd import Client
from tests.neighbours import children, peers, sharers
from tests.neighbours.scene import Act, Scene
from tests.support.command import Daemon, Home, eventually, kinds_in
from tests.support.innocents import HANDLERS, KINDS, VARIABLE, Innocents

ROUND_SECONDS = 1.5
ACTS_AT_ONCE = (2, 5)
INNOCENTS = 12
ENDED_SECONDS = 60.0
LOOK_SECONDS = 0.05
LINES, LINE_LENGTH_MAX = 20, 300  # of the log, where something is wrong
BLOCKED_SECONDS_MAX = 1.0
GROWN_MIB_MAX = 150.0
AGAIN = frozenset({"retrying", "snoozed"})  # a child that another's thread has spoiled, a shortage
SHOWN_THE_DOOR = (OSError, psycopg.OperationalError, sqlite3.OperationalError)
ENDED = ("succeeded", "failed", "canceled")
OPTIONS = (
    *("--set", "retry.base_seconds=0.1"),
    *("--set", "workers.max_count=6"),
    *("--set", "http.listen=127.0.0.1:0"),
)


@attrs.frozen
class Figures:
    """`fault`: the first thing that was not as it should be, after which no round was played."""

    rounds: int
    acts: Counter[str]
    innocents: int
    strangers: int
    slowest_seconds: float
    grown_mib: float
    fault: str | None

    def __str__(self) -> str:
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.acts.items()))
        return (
            f"{self.rounds} rounds, {self.acts.total()} acts ({acts}), {self.innocents} innocent"
            f" jobs and {self.strangers} hostile ones; slowest probe {self.slowest_seconds:.2f} s,"
            f" memory +{self.grown_mib:.0f} MiB"
        )


class Probe:
    """Asks whether the daemon lives, all the time, on a connection that stays open: it shows how
    long the loop stood still at most. What the daemon waited for a core of the machine is left out.
    """

    def __init__(self, daemon: Daemon) -> None:
        self.slowest_seconds = 0.0
        self._place = daemon.address.removeprefix("http://")
        pid = daemon.process.pid
        self._waited = Path(f"/proc/{pid}/task/{pid}/schedstat")
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(http.client.HTTPConnection(self._place, timeout=30)) as asking:
            while not self._leaving.is_set():
                self._leaving.wait(LOOK_SECONDS)
                was_open, began = asking.sock is not None, self._clock()
                if _is_alive(asking) and was_open:
                    self.slowest_seconds = max(self.slowest_seconds, self._clock() - began)

    def _clock(self) -> float:
        """Seconds that stand still while the daemon waits for a core."""
        return time.monotonic() - int(self._waited.read_text().split()[1]) / 1e9


def _is_alive(asking: http.client.HTTPConnection) -> bool:
    """Whether it said so; where it did not, the next one asks on a new connection."""
    try:
        asking.request("GET", "/livez")
        return asking.getresponse().read() == b"ok\n"
    except (OSError, http.client.HTTPException):
        asking.close()
        return False


def run(home: Home, folder: Path, seed: int, rounds: int) -> Figures:
    rng, tally = Random(seed), Counter[str]()
    fault: str | None = None
    with _scene(home, folder) as scene, Probe(scene.daemon) as probe:
        shared = sharers.ON_POSTGRESQL if scene.weak_url else sharers.ON_SQLITE
        pool = (*peers.PEERS, *shared, *children.CHILDREN * 3)
        base, grown, played = 0.0, 0.0, 0
        while played < rounds and fault is None:
            acts = rng.sample(pool, rng.randint(*ACTS_AT_ONCE))
            names = sorted(act.__name__ for act in acts)
            tally.update(names)
            try:
                _round(scene, acts, rng)
                base = base or _mib(scene)
                grown = max(grown, _mib(scene) - base)
                _judge(scene, probe, grown)
                played += 1
            except AssertionError as error:
                log = "\n".join(line[:LINE_LENGTH_MAX] for line in scene.daemon.log[-LINES:])
                fault = f"seed {seed}, after {played} rounds: {', '.join(names)}: {error}\n{log}"
        fault = fault or _fault_of_all(scene, home)
        slowest = probe.slowest_seconds
    jobs = len(scene.innocents.promised), len(scene.strangers)
    return Figures(played, tally, *jobs, slowest, grown, fault)


@contextlib.contextmanager
def _scene(home: Home, folder: Path) -> Generator[Scene]:
    (folder / "innocent.py").write_text(HANDLERS)
    (folder / "hostile.py").write_text(children.HANDLERS)
    (folder / "done").touch()
    kinds = kinds_in(folder, KINDS + children.KINDS)
    home = attrs.evolve(home, more={VARIABLE: str(folder / "done")})
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(home.daemon(*kinds, *OPTIONS))
        daemon.wait_until_ready()
        url = home.store_url or f"sqlite:///{home.folder.resolve()}/musterd.db"
        weak = stack.enter_context(sharers.weak_role(url)) if home.store_url else ""
        yield Scene(daemon, Innocents(url, folder / "done"), weak)


def _round(scene: Scene, acts: list[Act], rng: Random) -> None:
    """All of them at once, each with dice of its own; innocent jobs come meanwhile."""
    scene.ends_at = time.monotonic() + ROUND_SECONDS
    faults: list[str] = []

    def play(act: Act, own: Random) -> None:
        try:
            act(scene, own)
        except SHOWN_THE_DOOR:
            return
        except Exception as error:  # noqa: BLE001 - a mistake in the act, told with its round
            faults.append(f"{act.__name__}: {error!r}")

    threads = [threading.Thread(target=play, args=(act, Random(rng.random()))) for act in acts]
    for thread in threads:
        thread.start()
    for kind in ("work", "program"):
        scene.innocents.enqueue(INNOCENTS // 2, kind)
        scene.wait(0.3)
    for thread in threads:
        thread.join()
    assert not faults, faults


def _judge(scene: Scene, probe: Probe, grown_mib: float) -> None:
    assert scene.daemon.process.poll() is None, "the daemon has ended"
    scene.innocents.have_ended(ENDED_SECONDS)
    scene.innocents.count_effects(AGAIN)
    assert probe.slowest_seconds < BLOCKED_SECONDS_MAX, f"{probe.slowest_seconds:.2f} s for a probe"
    assert grown_mib < GROWN_MIB_MAX, f"memory grew by {grown_mib:.0f} MiB"


def _fault_of_all(scene: Scene, home: Home) -> str | None:
    try:
        _judge_all(scene, home)
    except AssertionError as error:
        return f"at the end: {error}"
    return None


def _judge_all(scene: Scene, home: Home) -> None:
    """Hostile jobs have ended too, once each; the store is whole."""
    with Client(scene.innocents.url) as client:
        eventually(
            lambda: all(client.job(each)["state"] in ENDED for each in scene.strangers),
            ENDED_SECONDS,
        )
        for each in scene.strangers:
            outcomes = [one["outcome"] for one in client.job(each)["attempts"]]
            assert sum(one in ENDED for one in outcomes) == 1, (each, outcomes)
    verified = home.call("verify")
    assert verified.code == 0, verified.out + verified.err


def _mib(scene: Scene) -> float:
    text = Path(f"/proc/{scene.daemon.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0]) / 1024
