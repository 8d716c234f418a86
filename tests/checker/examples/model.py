"""Histories drawn by lot from a model that keeps all the rules: nodes, clients and a store, over a
line that loses, delays and repeats; nodes that die, freeze and come back. The same seed gives the
same history.
"""

from __future__ import annotations

import heapq

from tests.checker.examples.model_line import (
    END_SECONDS,
    Carry,
    Node,
)
from tests.checker.examples.model_nodes import Nodes
from tests.checker.examples.model_store import Told
from tests.checker.writing import History


class Model(Nodes):
    def run(self) -> History:
        self.history.note("fault", what="line")
        for name in ("north", "south", "west"):
            self._start(Node(name))
        self._after(0.1, self._use)
        self._after(5.0, self._disturb)
        self._after(max(self._rough_seconds, self._users_until), self._heal)
        while self._queue and (self._queue[0][0] < END_SECONDS or not self._settled()):
            self.history.t, _, act = heapq.heappop(self._queue)
            act()
            if self._settled() and self.history.t > self._users_until + self._calm_seconds:
                break
        self.store.write_final()
        return self.history

    def _settled(self) -> bool:
        return not self._faults and not self._left

    # clients

    def _use(self) -> None:
        rng = self._rng
        if self.history.t > self._users_until or not self._left:
            self._left = 0
            if self.store.paused:
                self._client("resume_queue", {}, self._resume_queue)
            return
        if rng.random() < 0.7 or not self.store.made:
            self._left -= 1
            self._enqueue()
        elif rng.random() < 0.9:
            op = rng.choice(["cancel", "pause", "resume", "release", "clear", "resume"])
            job = rng.randint(max(1, self.store.made - 30), self.store.made)
            self._client(op, {"job": job}, lambda: self.store.control(op, job))
        elif self.store.paused:
            self._client("resume_queue", {}, self._resume_queue)
        else:
            self._client("pause_queue", {}, self._pause_queue)
        self._after(rng.expovariate(max(1.5, self._left / self._users_until * 2)), self._use)

    def _client(self, op: str, asked: Told, carry: Carry) -> None:
        self._ask(op, "client:shop", asked, carry, lambda _status, _result: None)

    def _resume_queue(self) -> Told:
        self.store.paused = False
        return {}

    def _pause_queue(self) -> Told:
        self.store.paused = self._faults
        return {}

    def _enqueue(self) -> None:
        rng, number = self._rng, self._left
        options: Told = {"kind": rng.choice(["report", "report", "capped"])}
        if rng.random() < 0.3:
            options["target"] = rng.choice("xyz")
        if rng.random() < 0.1:
            options["delay_seconds"] = rng.choice([3.0, 20.0])
        if rng.random() < 0.05:
            options["hold"] = True
        if rng.random() < 0.15:
            options["dedup_key"] = rng.choice(["k1", "k2"])
        if rng.random() < 0.2:
            options["priority"] = rng.choice([-1, 5])
        asked = {**options, "payload": {"number": number}}
        self._client("enqueue", asked, lambda: self.store.enqueue(number, **options))

    # the ground

    def _disturb(self) -> None:
        if not self._faults:
            return
        node, what = self._rng.choice(self._nodes), self._rng.random()
        if not node.alive or node.frozen:
            pass
        elif what < 0.4:
            self._kill(node)
        else:
            node.frozen = True
            self.history.note("fault", what="freeze", node=node.name)
            self._after(self._rng.uniform(1, 25), lambda: self._thaw(node))
        self._after(self._rng.uniform(3, 15), self._disturb)

    def _kill(self, node: Node) -> None:
        node.alive = False
        self.history.note("fault", what="kill", node=node.name)
        self._after(self._rng.uniform(1, 20), lambda: self._start(Node(node.name)))

    def _thaw(self, node: Node) -> None:
        node.frozen = False
        self.history.note("fault", what="thaw", node=node.name)
        waiting, node.waiting = node.waiting, []
        for act in waiting:
            act()

    def _heal(self) -> None:
        if any(node.frozen or not node.alive for node in self._nodes):
            self._after(1.0, self._heal)
            return
        self._faults = False
        self.history.note("fault", what="heal")
        self._client("resume_queue", {}, self._resume_queue)
