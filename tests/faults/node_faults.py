"""What befalls daemons: killed, frozen, told to leave; and their children."""

from __future__ import annotations

import os
import signal
import threading
import time
from random import Random

from tests.faults.fleet import Node, send
from tests.faults.scene import Scene
from tests.faults.watching import LOOK_SECONDS, within

BUSY_SECONDS = 20.0  # so long somebody is waited for who is at work
WORK_BETWEEN = 15  # attempts that end from one kill to the next, if they do within
WORK_SECONDS = 4.0
LAST_SHARE = 0.15  # of the kills that don't care whether another node is left
WHOLE_SHARE = 0.4  # of the freezes that stop the handlers' children too


class NodeFaults:
    """Several tracks share the nodes: who has taken one up is left alone with it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._taken: set[str] = set(scene.spared)
        self._ended_at_kill = 0
        self._lock = threading.Lock()

    def kill(self, rng: Random) -> bool:
        """Counts if something was in its hand. Some work is let pass since the one before."""
        enough = self._ended_at_kill + WORK_BETWEEN
        within(WORK_SECONDS, lambda: self._scene.watch.ended >= enough)
        self._ended_at_kill = self._scene.watch.ended
        if rng.random() > LAST_SHARE:
            within(BUSY_SECONDS, lambda: self._ready() > 1)
        node = self._take_busy(rng)
        if node is None:
            return False
        try:
            time.sleep(rng.uniform(0, 0.1))
            self._scene.fleet.kill(node)
            time.sleep(2 * LOOK_SECONDS)  # nothing comes from there any more
            was_busy = self._scene.watch.is_busy(node.name)
            self._scene.fleet.replace(node)
        finally:
            self._give_back(node)
        return was_busy

    def freeze(self, rng: Random) -> bool:
        node = self._take_busy(rng)
        if node is None:
            return False
        try:
            was_busy = self._scene.watch.is_busy(node.name)
            self._scene.fleet.freeze(node, whole=rng.random() < WHOLE_SHARE)
            time.sleep(rng.uniform(0.5, 3) * self._scene.sizes.lease_seconds)
            self._scene.fleet.thaw(node)
        finally:
            self._give_back(node)
        return was_busy

    def leave(self, rng: Random) -> bool:
        """As at a deploy: it drains, and its successor takes its place."""
        taken: list[Node] = []
        if not self._take(rng, taken, busy=False):
            return False
        (node,) = taken
        try:
            self._scene.fleet.tell_to_leave(node)
            code = self._scene.fleet.has_left(node)
            assert code == 0, f"{node.name} ended with {code}"
            self._scene.fleet.replace(node)
        finally:
            self._give_back(node)
        return True

    def executor_kill(self, rng: Random) -> bool:
        """One of the children that handlers run in; counts if its node was at work."""
        nodes = [one for one in self._scene.fleet.nodes if self._scene.watch.is_busy(one.name)]
        if not nodes:
            return False
        node = rng.choice(nodes)
        children = [each for each in node.processes() if each != node.process_id]
        if not children:
            return False
        self._scene.recorder.fault("executor_kill", of=node.name)
        child = rng.choice(sorted(children))
        was_there = os.path.exists(f"/proc/{child}")  # noqa: PTH110 - a plain question
        send(child, signal.SIGKILL)
        return was_there

    def _ready(self) -> int:
        nodes = self._scene.fleet.nodes
        return sum(one.is_alive() and one.is_ready() and not one.is_frozen for one in nodes)

    def _take_busy(self, rng: Random) -> Node | None:
        taken: list[Node] = []
        within(BUSY_SECONDS, lambda: self._take(rng, taken, busy=True))
        return taken[0] if taken else None

    def _take(self, rng: Random, taken: list[Node], *, busy: bool) -> bool:
        """A node that is ready, and nobody else's."""
        with self._lock:
            free = [
                one
                for one in self._scene.fleet.nodes
                if one.name not in self._taken and one.is_alive() and one.is_ready()
                if not busy or self._scene.watch.is_busy(one.name)
            ]
            if free:
                taken.append(rng.choice(free))
                self._taken.add(taken[0].name)
            return bool(free)

    def _give_back(self, node: Node) -> None:
        with self._lock:
            self._taken.discard(node.name)
