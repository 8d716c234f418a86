"""What the real daemon tells systemd, at a socket of the test's own."""

import itertools
import secrets
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command import COMMAND, Daemon, Home, eventually
from tests.support.notify_socket import NotifySocket

WATCHDOG_SECONDS = 1.5  # fed every half second
HANDLERS = """
import os
import time

def environ(job):
    return sorted(os.environ)

async def blocks(job):
    time.sleep(job.payload)
"""
KINDS = """
[kinds.environ]
python = "speaking:environ"
[kinds.environ-thread]
python = "speaking:environ"
isolation = "thread"
[kinds.environ-command]
command = ["/usr/bin/env"]
environment = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]
[kinds.blocks]
python = "speaking:blocks"
isolation = "task"
[kinds.lasts]
duration_ms = 60000
"""


@pytest.fixture
def heard() -> Generator[NotifySocket]:
    opened = NotifySocket(f"@musterd-{secrets.token_hex(8)}")
    with opened.listening():
        yield opened
    opened.close()


@contextmanager
def supervised(home: Home, heard: NotifySocket, *arguments: str) -> Generator[Daemon]:
    """A daemon as systemd starts it."""
    told = {
        "NOTIFY_SOCKET": heard.address,
        "WATCHDOG_USEC": f"{WATCHDOG_SECONDS * 1e6:.0f}",
    }
    command = [*COMMAND, "run", "--set", "http.listen=127.0.0.1:0", *arguments]
    with Daemon(command, home.environ() | told) as daemon:
        yield daemon


def fed_since(heard: NotifySocket, start: float) -> int:
    return sum(one.at > start for one in heard.named("WATCHDOG"))


def write_kinds(folder: Path) -> Path:
    (folder / "speaking.py").write_text(HANDLERS)
    (folder / "kinds.toml").write_text(KINDS)
    config = folder / "musterd.toml"
    config.write_text('[catalog]\npaths = ["kinds.toml"]\n')
    return config


def test_a_whole_life(home: Home, heard: NotifySocket, tmp_path: Path) -> None:
    config = write_kinds(tmp_path)
    with supervised(home, heard, "--config", str(config)) as daemon:
        eventually(lambda: heard.values("READY") == ["1"])
        daemon.wait_until_ready()
        eventually(lambda: heard.values("STATUS")[-1] == "2/8 workers, 0 due")

        before_usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        daemon.send(signal.SIGHUP)
        eventually(lambda: len(heard.named("READY")) == 2)
        config.write_text("[workers]\nmax_count = 0\n")
        daemon.send(signal.SIGHUP)
        eventually(lambda: len(heard.named("READY")) == 3)
        eventually(lambda: "the last reload was refused" in heard.values("STATUS")[-1])
        write_kinds(tmp_path)
        daemon.send(signal.SIGHUP)
        eventually(lambda: len(heard.named("READY")) == 4)
        eventually(lambda: "refused" not in heard.values("STATUS")[-1])
        moments = [int(one) for one in heard.values("MONOTONIC_USEC")]
        assert before_usec < moments[0] < moments[1] < moments[2]
        told = [
            name
            for one in heard.messages
            for name in one.lines
            if name[-1] == "Y" or "LOAD" in name
        ]
        assert told == ["READY"] + ["RELOADING", "READY"] * 3

        home.call("enqueue", "lasts", "--config", str(config))
        eventually(lambda: home.job(1)["state"] == "running")
        daemon.send(signal.SIGTERM)
        eventually(lambda: len(heard.named("STOPPING")) == 1)
        eventually(lambda: "draining, 1 running" in heard.values("STATUS")[-1])
        (stopping,) = heard.named("STOPPING")
        assert stopping.lines["EXTEND_TIMEOUT_USEC"] == "30000000"
        start = time.monotonic()
        eventually(lambda: fed_since(heard, start) > 1)
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
        assert len(heard.named("STOPPING")) == 1


def test_signs_of_life_end_with_the_loop_and_come_back_with_it(
    home: Home, heard: NotifySocket, tmp_path: Path
) -> None:
    config = str(write_kinds(tmp_path))
    with supervised(home, heard, "--config", config) as daemon:
        eventually(lambda: len(heard.named("WATCHDOG")) > 2)
        daemon.send(signal.SIGSTOP)
        time.sleep(0.1)  # what was on its way arrives
        start = time.monotonic()
        time.sleep(1.0)
        assert fed_since(heard, start) == 0
        daemon.send(signal.SIGCONT)
        eventually(lambda: fed_since(heard, start) > 2)

        start = time.monotonic()
        home.call("enqueue", "blocks", "--payload", "2.5", "--wait", "--config", config)
        eventually(lambda: fed_since(heard, time.monotonic() - 0.4) > 0)
        fed = [start, *(one.at for one in heard.named("WATCHDOG") if one.at > start)]
        assert max(after - before for before, after in itertools.pairwise(fed)) > 2


def test_no_child_and_no_handler_can_speak_for_the_daemon(
    home: Home, heard: NotifySocket, tmp_path: Path
) -> None:
    config = str(write_kinds(tmp_path))
    with supervised(home, heard, "--config", config) as daemon:
        daemon.wait_until_ready()
        for kind in ("environ", "environ-thread", "environ-command"):
            done = home.call("enqueue", kind, "--wait", "--json", "--config", config).json
            assert done["state"] == "succeeded"
            assert "PATH" in str(done["result"])
            assert "NOTIFY_SOCKET" not in str(done["result"])
            assert "WATCHDOG" not in str(done["result"])


def test_it_is_not_ready_while_its_store_is_away(home: Home, heard: NotifySocket) -> None:
    away = ("--set", "store.url=postgresql://x:s3cr3t@127.0.0.1:1/x")
    with supervised(home, heard, *away) as daemon:
        eventually(lambda: any("waiting for the store" in one for one in heard.values("STATUS")))
        assert heard.values("EXTEND_TIMEOUT_USEC")[0] == "30000000"
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    assert heard.named("READY") == []
    assert len(heard.named("STOPPING")) == 1
    assert "s3cr3t" not in str(heard.messages)
