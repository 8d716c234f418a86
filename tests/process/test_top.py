"""`musterd top` in a real terminal: what a person sees and does, and what is left behind."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from tests.support.command import COMMAND, Home, eventually
from tests.support.missing import program

SECONDS = 20.0


@attrs.frozen
class Pane:
    """A terminal of its own server, with a shell in it."""

    server: str
    home: Home

    def tmux(self, *words: str) -> str:
        asked = [program("tmux"), "-L", self.server, "-f", "/dev/null", *words]
        environ = self.home.environ() | {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(asked, env=environ, capture_output=True, text=True, check=True)
        return done.stdout

    def start(self, *words: str, after: str = "") -> None:
        command = shlex.join([*COMMAND, *words])
        shell = f"stty -a > {self.home.folder}/before; {command}; echo ended $?; {after}exec cat"
        size = ("-x", "100", "-y", "30")
        self.tmux("-u", "new-session", "-d", *size, "sh", "-c", shell)

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    @property
    def lines(self) -> list[str]:
        return self.tmux("capture-pane", "-p").splitlines()

    def see(self, holds: Callable[[list[str]], bool]) -> None:
        try:
            eventually(lambda: holds(self.lines), SECONDS)
        except AssertionError:
            raise AssertionError("\n".join(self.lines)) from None

    def see_line(self, text: str) -> None:
        self.see(lambda lines: any(text in line for line in lines))


@pytest.fixture
def pane(machine: Home, tmp_path: Path) -> Iterator[Pane]:
    machine.folder.mkdir(exist_ok=True)
    pane = Pane(f"musterd-{os.getpid()}-{tmp_path.name}", machine)
    yield pane
    subprocess.run(
        [program("tmux"), "-L", pane.server, "kill-server"], capture_output=True, check=False
    )


def test_a_person_filters_cancels_pauses_and_quits(pane: Pane) -> None:
    home = pane.home
    (home.folder / "kinds.toml").write_text("[kinds.long]\nduration_ms = 60000\n")
    known = ("--set", f'catalog.paths=["{home.folder}/kinds.toml"]')
    crew = ("--set", "workers.default_count=1", "--set", "workers.max_count=1")
    with home.daemon(*known, *crew) as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "long", *known)
        home.call("enqueue", "report", "--count", "3", "--hold")
        again = f"stty -a > {home.folder}/after; "
        pane.start("top", "--interval", "0.2", "--set", daemon.listen, after=again)
        pane.see(lambda lines: lines[1].startswith("healthy: running for "))
        pane.see_line("[■] 1 of 1")
        pane.see(lambda lines: " long " in lines[7] and "running" in lines[7])

        pane.type("/", "state=pending", "Enter")
        pane.see(lambda lines: "report" in lines[7] and "4 " in lines[7])
        pane.type("c")
        pane.see_line("cancel job 4 (report, pending)? y/n")
        pane.type("y")
        eventually(lambda: home.job(4)["state"] == "canceled")
        pane.type("w")
        pane.see_line("q goes back")
        pane.type("q", "P", "y")
        pane.see(lambda lines: lines[2].startswith("queue  PAUSED by "))
        pane.tmux("resize-window", "-x", "40", "-y", "10")
        pane.see(lambda lines: len(lines) == 10 and lines[0].startswith("healthy"))
        pane.type("q")
        pane.see(lambda lines: lines[0] == "ended 0")
    assert (home.folder / "after").read_text().splitlines()[1:] == (
        (home.folder / "before").read_text().splitlines()[1:]
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(home: Home, number: signal.Signals) -> None:
    home.call("db", "migrate")
    controller, terminal = pty.openpty()
    environ = home.environ() | {"TERM": "xterm"}
    words = [*COMMAND, "top", "--set", "http.listen="]
    with subprocess.Popen(words, env=environ, stdin=terminal, stdout=terminal) as process:
        written = _read_until(controller, b"no jobs")
        assert b"\x1b[?1049h" in written
        process.send_signal(number)
        rest = _read_until(controller, b"\x1b[?1049l")
        assert process.wait(SECONDS) == 0
    assert rest.endswith(b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l")
    os.close(controller)
    os.close(terminal)


def test_a_terminal_that_is_closed_ends_it(home: Home) -> None:
    home.call("db", "migrate")
    controller, terminal = pty.openpty()
    words = [*COMMAND, "top", "--set", "http.listen="]
    environ = home.environ() | {"TERM": "xterm"}
    process = subprocess.Popen(
        words, env=environ, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE
    )
    os.close(terminal)
    _read_until(controller, b"no jobs")
    os.close(controller)
    _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (0, b"")


def test_without_a_terminal_one_look_is_printed(home: Home) -> None:
    made = home.call("enqueue", "report", "--json").json
    found = home.call("top", "--set", "http.listen=")
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[1].startswith("healthy: the store answers")
    assert "\x1b" not in found.out
    whole = home.call("top", "--json", "--filter", "kind=report", "--set", "http.listen=").json
    assert made["id"] in [job["id"] for job in whole["jobs"]]
    assert home.call("top", "--filter", "knd=x").code == 2


def test_a_store_that_is_away_is_exit_69_for_one_look_and_waited_for_on_a_screen(
    home: Home,
) -> None:
    away = ("--set", "store.url=postgresql://x@127.0.0.1:1/x", "--set", "http.listen=")
    assert home.call("top", "--once", *away).code == 69
    controller, terminal = pty.openpty()
    environ = home.environ() | {"TERM": "xterm"}
    with subprocess.Popen(
        [*COMMAND, "top", *away], env=environ, stdin=terminal, stdout=terminal
    ) as process:
        _read_until(controller, b"the store is not available")
        os.write(controller, b"\x03")
        _read_until(controller, b"\x1b[?1049l")
        assert process.wait(SECONDS) == 0
    os.close(controller)
    os.close(terminal)


def _read_until(controller: int, wanted: bytes) -> bytes:
    found, deadline = b"", time.monotonic() + SECONDS
    while wanted not in found:
        assert time.monotonic() < deadline, found
        found += os.read(controller, 65536)
    return found
