"""Readers of events of real daemons, which die and come back."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import SHORT_DUTIES, Daemon, Home, eventually
from tests.support.http_client import ask
from tests.support.sse_client import Refused, Stream, Told, opened, stream

JOBS = 240
KILLS = 4
BRISK_LEASES = (
    "--set",
    "leases.reap_interval_seconds=0.2",
    "--set",
    "workers.lease_timeout_seconds=2",
)
BRISK = (*BRISK_LEASES, *SHORT_DUTIES)


class Wanderer:
    """Reads the events of whoever is there; leaves and comes back by its own rng."""

    def __init__(self, seed: int) -> None:
        self.told: list[Told] = []
        self.snapshots = 0
        self.came = 0
        self.address = ""
        self._rng = random.Random(seed)
        self._is_ending = False
        self._thread = threading.Thread(target=self._run)

    @contextmanager
    def wandering(self) -> Generator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._is_ending = True
            self._thread.join(30)

    def has(self, position: int) -> bool:
        return bool(self.told) and (self.told[-1].id or 0) >= position

    def _run(self) -> None:
        while not self._is_ending:
            try:
                self._visit()
            except (Refused, OSError):
                time.sleep(0.05)

    def _visit(self) -> None:
        # Where it knows of nothing yet it asks for everything.
        last = self.told[-1].id if self.told else 0
        with stream(self.address, last_id=last) as opened_one:
            self.came += 1
            for told in opened_one.events(self._rng.uniform(0.05, 1.5)):
                if told.name == "snapshot":
                    self.snapshots += 1
                elif told.name != "ping":
                    self.told.append(told)


def all_events(home: Home) -> list[Any]:
    return home.call("events", "--since", "0", "--json").lines


def test_each_event_once_and_in_order_through_every_death(machine: Home) -> None:
    machine.call("db", "migrate")
    wanderers = [Wanderer(seed) for seed in range(3)]
    with ExitStack() as wandering:
        for life in range(KILLS):
            with machine.daemon(*BRISK) as daemon:
                daemon.wait_until_ready()
                _lead(wanderers, daemon, wandering)
                machine.call("enqueue", "report", "--count", str(JOBS // KILLS))
                time.sleep(0.4 + 0.2 * life)
                daemon.send(signal.SIGKILL)
                daemon.process.wait()
        with machine.daemon(*BRISK) as daemon:
            daemon.wait_until_ready()
            _lead(wanderers, daemon, wandering)
            eventually(lambda: _succeeded(daemon) == JOBS, seconds=60)
            newest = all_events(machine)[-1]["id"]
            eventually(lambda: all(one.has(newest) for one in wanderers))
    written = [one["id"] for one in all_events(machine)]
    assert written == list(range(1, len(written) + 1))
    for one in wanderers:
        ids = [told.id for told in one.told]
        assert ids == written[: len(ids)], "missed, doubled or out of order"
        assert one.snapshots == 0
        assert one.came > KILLS
    ended = [told.data["job_id"] for told in wanderers[0].told if told.name == "job.succeeded"]
    assert sorted(ended) == list(range(1, JOBS + 1))


def test_a_drain_is_told_to_its_end_and_the_next_daemon_goes_on(machine: Home) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        with stream(daemon.address) as one:
            one.take(1, "snapshot")
            job_id = machine.call("enqueue", "report", "--json").json["id"]
            one.take(1, "job.started")
            daemon.send(signal.SIGTERM)
            told = list(one.events())
            assert one.is_whole
        assert daemon.end() == 0
    names = [each.name for each in told if each.name != "ping"]
    assert (names[-1], names.count("node.draining")) == ("node.stopped", 1)
    assert names.index("job.succeeded") < names.index("node.stopped")
    assert names.count("worker.retired") == 2
    assert {each.data["job_id"] for each in told if each.name[:3] == "job"} == {job_id}
    last_id = told[-1].id or 0
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        with stream(daemon.address, last_id=last_id) as one:
            (first,) = one.take(1)
    assert (first.name, first.id) == ("node.started", last_id + 1)


def test_an_id_that_the_log_does_not_have_gets_a_snapshot(machine: Home) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        machine.call("enqueue", "noop", "--wait")
        newest = all_events(machine)[-1]["id"]
        for last_id in (newest + 1000, "x"):
            with stream(daemon.address, last_id=last_id) as one:
                (first,) = one.take(1)
            assert (first.name, first.data["gap"]) == ("snapshot", True)
        for known in (0, newest):
            with stream(daemon.address, last_id=known) as one:
                machine.call("enqueue", "noop")
                (first,) = one.take(1)
            assert first.id == known + 1


def test_readers_beyond_the_bound_are_refused_and_the_rest_goes_on(home: Home) -> None:
    with home.daemon("--set", "http.max_event_readers=120") as daemon, ExitStack() as leaving:
        daemon.wait_until_ready()
        for _ in range(120):
            leaving.enter_context(stream(daemon.address))
        with pytest.raises(Refused) as refused:
            opened(daemon.address)
        assert refused.value.status == 503
        assert b"max_event_readers" in refused.value.body
        assert ask(daemon.address, "/status").status == 200  # 120 readers leave 100 places
        before = files_of(daemon)
        leaving.close()
        eventually(lambda: files_of(daemon) <= before - 120)
        with stream(daemon.address) as one:
            one.take(1, "snapshot")


def test_one_who_never_reads_is_cut_off_and_nobody_waits_for_it(home: Home) -> None:
    with home.daemon("--set", "workers.max_count=2") as daemon:
        daemon.wait_until_ready()
        with stream(daemon.address) as mute, stream(daemon.address) as quick:
            quick.take(1, "snapshot")
            home.call("enqueue", "noop", "--count", "8000")
            quick.take(8000, "job.succeeded")
            eventually(lambda: _is_cut_off(mute), seconds=40)
        assert ask(daemon.address, "/readyz").status == 200


def _succeeded(daemon: Daemon) -> int:
    found: int = ask(daemon.address, "/status").json["counts"]["jobs"]["succeeded"]
    return found


def files_of(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


def _lead(wanderers: list[Wanderer], daemon: Daemon, wandering: ExitStack) -> None:
    """Tells them where the daemon is; the first time they set out."""
    for one in wanderers:
        is_new, one.address = not one.address, daemon.address
        if is_new:
            wandering.enter_context(one.wandering())


def _is_cut_off(mute: Stream) -> bool:
    """Whether the daemon has let go of a connection; what it has in store for us is not read."""
    found = Path("/proc/net/tcp").read_text()
    own = mute.port
    return not any(
        line.split()[2].endswith(f":{own:04X}") and line.split()[3] == "01"
        for line in found.splitlines()[1:]
    )
