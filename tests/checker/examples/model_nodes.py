"""What the model's nodes do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.checker.examples.model_line import (
    HEARTBEAT_SECONDS,
    MARGIN_SECONDS,
    POLL_SECONDS,
    WORKERS,
    Carry,
    Heard,
    Line,
    Node,
    Work,
)
from tests.checker.examples.model_store import (
    BUDGET,
    LEASE_SECONDS,
    Told,
)


class Nodes(Line):
    def _start(self, node: Node) -> None:
        others = [one for one in self._nodes if one.name != node.name]
        self._nodes = [*others, node]
        self.history.note("process", what="started", node=node.name)
        for act in (self._poll, self._beat, self._reap, self._lead, self._clean):
            self._at(node, self._rng.uniform(0, 1), act)

    def _at(self, node: Node, seconds: float, act: Callable[[Node], None]) -> None:
        self._after(seconds, lambda: self._awake(node, lambda: act(node)))

    def _awake(self, node: Node, act: Callable[[], None]) -> None:
        """A dead node does nothing, a frozen one later."""
        if node.frozen and node.alive:
            node.waiting.append(act)
        elif node.alive:
            act()

    def _by(self, node: Node, op: str, asked: Told, carry: Carry, heard: Heard) -> None:
        def told(status: str, result: Told) -> None:
            self._awake(node, lambda: heard(status, result))

        self._ask(op, node.who, asked, carry, told)

    def _poll(self, node: Node) -> None:
        self._at(node, POLL_SECONDS, self._poll)
        free = WORKERS - len(node.work)
        if free <= 0:
            return
        self._tokens += 1
        token, sent = f"t{self._tokens}", self.history.t
        asked = {"token": token, "lease_seconds": LEASE_SECONDS}

        def heard(status: str, result: Told) -> None:
            if status == "unknown":
                back = self.store.leased
                self._by(node, "read_back", {"token": token}, lambda: back(token), heard_again)
            for one in result.get("jobs", ()):
                self._begin(node, one, token, sent)

        def heard_again(_status: str, result: Told) -> None:
            for one in result.get("jobs", ()):
                self._begin(node, one, token, sent)

        self._by(node, "claim", asked, lambda: self.store.claim(node.name, token, free), heard)

    def _begin(self, node: Node, one: Told, token: str, sent: float) -> None:
        length = self._rng.choice([0.05, 0.3, 1.0, 6.0, 15.0])
        work = Work(one["job"], token, one["attempt"], sent, self.history.t + length)
        if self.history.t > self._deadline(work):
            return
        node.work[work.job] = work
        self._handler(node, work, "begin")
        self._at(node, length, lambda node: self._finish(node, work))

    def _handler(self, node: Node, work: Work, what: str, **more: Any) -> None:
        told = {"job": work.job, "attempt": work.attempt, "token": work.token, "who": node.who}
        self.history.note(what, **told, **more)

    def _deadline(self, work: Work) -> float:
        return work.trusted + LEASE_SECONDS - MARGIN_SECONDS

    def _finish(self, node: Node, work: Work) -> None:
        if work.over:
            return
        work.over = True
        if self.history.t > self._deadline(work):
            self._drop(node, work)
            return
        choice = self._rng.random()
        good = choice < 0.75 or not self._faults
        self._handler(node, work, "effect")
        self._handler(node, work, "end", outcome="success" if good else "failure")
        self._settle(node, work, self._verdict(choice) if not good else verdict("succeeded"))

    def _verdict(self, choice: float) -> Told:
        if choice < 0.80:
            return verdict("failed")
        if choice < 0.93:
            return {**verdict("queued", "retrying"), "delay_seconds": 1.5}
        if choice < 0.97:
            return verdict("queued", "released", forgive=True)
        return {**verdict("queued", "snoozed", forgive=True), "delay_seconds": 3.0}

    def _drop(self, node: Node, work: Work) -> None:
        work.over = True
        node.work.pop(work.job, None)
        self._handler(node, work, "end", outcome="canceled")

    def _settle(self, node: Node, work: Work, end: Told) -> None:
        if end["state"] == "queued" and end["outcome"] == "retrying" and work.attempt % 4 == 0:
            end = verdict("failed")
        row = self.store.rows.get(work.job)
        if end["outcome"] == "retrying" and row is not None and row.used >= BUDGET:
            end = verdict("failed")
        asked = {"job": work.job, "token": work.token, "attempt": work.attempt, **end}

        def heard(status: str, _result: Told) -> None:
            if status == "unknown":
                self._at(node, 0.5, lambda node: self._settle(node, work, end))
            else:
                node.work.pop(work.job, None)

        carry = self.store.settle
        self._by(node, "settle", asked, lambda: carry(work.job, work.token, end), heard)

    def _beat(self, node: Node) -> None:
        self._at(node, HEARTBEAT_SECONDS, self._beat)
        for work in list(node.work.values()):
            if not work.over and self.history.t > self._deadline(work):
                self._drop(node, work)
            elif not work.over:
                self._renew(node, work)

    def _renew(self, node: Node, work: Work) -> None:
        sent = self.history.t
        asked = {"job": work.job, "token": work.token, "lease_seconds": LEASE_SECONDS}

        def heard(status: str, result: Told) -> None:
            if status == "ok":
                work.trusted = max(work.trusted, sent)
            if work.over:
                return
            if status == "stale":
                self._stop(node, work)
            elif result.get("asked"):
                state = {"cancel": "canceled", "pause": "paused"}[result["asked"]]
                if self._stop(node, work):
                    node.work[work.job] = work
                    self._settle(node, work, verdict(state, forgive=state == "paused"))

        carry = self.store.renew
        self._by(node, "renew", asked, lambda: carry(work.job, work.token), heard)

    def _stop(self, node: Node, work: Work) -> bool:
        in_time = self.history.t <= self._deadline(work)
        if in_time:
            self._handler(node, work, "told")
        self._drop(node, work)
        return in_time

    def _reap(self, node: Node) -> None:
        self._at(node, 3.0, self._reap)
        self._by(node, "reap", {}, self.store.reap, lambda _status, _result: None)

    def _lead(self, node: Node) -> None:
        """The one duty: to take it, to keep it, to do it."""
        self._at(node, 2.5, self._lead)
        sent, store = self.history.t, self.store
        duty: Told = {"duty": "schedules", "lease_seconds": LEASE_SECONDS}
        if node.term:
            self._keep(node, {**duty, "term": node.term})
            return
        self._tokens += 1
        term = f"d{self._tokens}"

        def heard(status: str, _result: Told) -> None:
            if status == "ok" and self.history.t < sent + LEASE_SECONDS:
                node.term = term

        self._by(
            node,
            "take_duty",
            {**duty, "term": term},
            lambda: store.take_duty(node.name, term),
            heard,
        )

    def _keep(self, node: Node, asked: Told) -> None:
        def heard(status: str, _result: Told) -> None:
            if status != "ok":
                node.term = ""  # in doubt it is somebody else's
            elif node.term:
                self._fire(node)

        carry = self.store.renew_duty
        self._by(node, "renew_duty", asked, lambda: carry(asked["term"]), heard)

    def _fire(self, node: Node) -> None:
        slot = str(int(self.history.t // 10))
        if not self._faults or self.store.now > self._rough_seconds:
            return
        asked = {"schedule": "nightly", "slot": slot}
        carry = self.store.fire
        self._by(node, "fire", asked, lambda: carry(slot, -int(slot)), lambda _s, _r: None)

    def _clean(self, node: Node) -> None:
        self._at(node, 15.0, self._clean)
        self._by(node, "delete", {}, self.store.delete, lambda _status, _result: None)


def verdict(state: str, outcome: str = "", *, forgive: bool = False) -> Told:
    return {"state": state, "outcome": outcome or state, **({"forgive": True} if forgive else {})}
