"""The daemons of a campaign: started, killed, frozen, told to leave, and what is left of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.faults.recording import Recorder
from tests.support.command import COMMAND, Daemon, Home

# In the environment of all that a campaign starts. Another campaign, at the same time on the same
# machine, has nodes of the same names: only both together say whose a process is.
RUN, NODE = "FAULTS_RUN", "FAULTS_NODE"
GONE_SECONDS = 30.0  # at once, but on a machine so busy that nobody gets his turn


@attrs.frozen
class Seat:
    """Where a daemon runs: its way to the store, and its own folder."""

    home: Home
    options: Sequence[str]


@attrs.define(eq=False)
class Node:
    """One daemon, from its start to its end. `marks`: see `marks_of`."""

    name: str
    marks: Mapping[str, str]
    seat: Seat
    daemon: Daemon
    is_frozen: bool = False

    @property
    def process_id(self) -> int:
        return self.daemon.process.pid

    def is_alive(self) -> bool:
        return self.daemon.process.poll() is None

    def processes(self) -> list[int]:
        """The daemon and all that it has started, its children's children too."""
        return tagged(self.marks)

    def is_ready(self) -> bool:
        return any("event=ready" in line for line in list(self.daemon.log))


class Fleet:
    """One node in each seat; a new one follows whoever ends. `witness`: what handlers append to;
    beside it stands the log of each node that has ended.
    """

    def __init__(self, recorder: Recorder, seats: Sequence[Seat], witness: Path, tag: str) -> None:
        self.nodes: list[Node] = []
        self.process_ids: dict[int, str] = {}
        self._recorder = recorder
        self._environ = {"FAULTS_WITNESS": str(witness)}
        self._folder = witness.parent
        self._tag = tag
        self._seats = seats
        self._count = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Fleet:
        self.nodes = [self._start(seat) for seat in self._seats]
        return self

    def __exit__(self, *_exc: object) -> None:
        for node in self.nodes:
            if node.is_alive():
                node.daemon.process.kill()
            self._close(node)

    def wait_until_ready(self) -> None:
        for node in self.nodes:
            node.daemon.wait_until_ready()

    def kill(self, node: Node) -> None:
        """At once, wherever it is. Its children are the kernel's to end."""
        self._recorder.fault("kill", node=node.name)
        node.daemon.process.kill()
        node.is_frozen = False
        self._bury(node)

    def freeze(self, node: Node, *, whole: bool) -> None:
        """Its own process, or the handlers' children too."""
        self._recorder.fault("freeze", node=node.name)
        node.is_frozen = True
        for process_id in node.processes() if whole else [node.process_id]:
            send(process_id, signal.SIGSTOP)

    def thaw(self, node: Node) -> None:
        self._recorder.fault("thaw", node=node.name)
        node.is_frozen = False
        for process_id in node.processes():
            send(process_id, signal.SIGCONT)

    def tell_to_leave(self, node: Node) -> None:
        self._recorder.note("process", what="told", node=node.name)
        node.daemon.process.terminate()

    def has_left(self, node: Node) -> int:
        """Waits for its end; gives its exit code."""
        code = node.daemon.end()
        self._bury(node)
        return code

    def replace(self, node: Node) -> Node:
        """Starts a daemon in the seat of one that has ended."""
        successor = self._start(node.seat)
        with self._lock:
            self.nodes[self.nodes.index(node)] = successor
        return successor

    def _start(self, seat: Seat) -> Node:
        with self._lock:
            self._count += 1
            name = f"n{self._count:03}"
        self._recorder.note("process", what="started", node=name)
        marks = marks_of(self._tag, name)
        environ = {**seat.home.environ(), **self._environ, **marks}
        daemon = Daemon([*COMMAND, "run", *seat.options], environ)
        self.process_ids[daemon.process.pid] = name
        return Node(name, marks, seat, daemon)

    def _bury(self, node: Node) -> None:
        node.daemon.process.wait()
        left = left_of(node.marks)
        self._recorder.note("process", what="ended", node=node.name, children=len(left))
        self._close(node)

    def _close(self, node: Node) -> None:
        node.daemon.__exit__(None, None, None)
        (self._folder / f"{node.name}.log").write_text("\n".join(node.daemon.log) + "\n")


def marks_of(tag: str, name: str) -> dict[str, str]:
    """What the node of this name, in the run of this tag, and its children have around them."""
    return {RUN: tag, NODE: name}


def left_of(marks: Mapping[str, str]) -> list[int]:
    """Who is still there with these in its environment, after a while."""
    deadline = time.monotonic() + GONE_SECONDS
    while (left := tagged(marks)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def tagged(marks: Mapping[str, str]) -> list[int]:
    """Who has all of these in its environment."""
    found: list[int] = []
    wanted = [f"\0{name}={value}\0".encode() for name, value in marks.items()]
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environ = (folder / "environ").read_bytes()
            except OSError:
                continue  # it has ended meanwhile
            if all(one in b"\0" + environ for one in wanted):
                found.append(int(folder.name))
    return found


def send(process_id: int, sign: signal.Signals) -> None:
    try:
        os.kill(process_id, sign)
    except ProcessLookupError:
        return  # it has just left


def options_of(file: Path, more: Mapping[str, Any]) -> tuple[str, ...]:
    sets = [word for key, value in more.items() for word in ("--set", f"{key}={value}")]
    return ("--config", str(file), *sets)
