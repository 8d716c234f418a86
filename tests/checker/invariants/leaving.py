"""M2 and M3: no job is left to its lease by a node that could do better."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import Claim, End, Job, Op, Record
from tests.checker.invariant import Invariant, noted


@dataclass(eq=False)
class UnknownClaims(Invariant, name="M2", needs={"claims"}, wants=("bounds.read_back",)):
    """A node that asks for something else meanwhile lives, and can ask; until it has an answer."""

    _unheard: dict[str, tuple[Op, float]] = noted(dict)
    _reading: set[str] = noted(set)  # tokens whose claims somebody is asking for just now

    def unheard(self, op: Op) -> None:
        if op.name == "claim":
            self.cases += 1
            self._unheard[op.call["token"]] = (op, self.world.now.t)
        elif op.name == "read_back":
            self._begin_anew(op.call["token"])

    def answered(self, op: Op, status: str) -> None:
        """A refusal does not say what was claimed."""
        if op.name == "read_back":
            self._begin_anew(op.call["token"])
            if status == "ok":
                self._unheard.pop(op.call["token"], None)

    def asked(self, op: Op) -> None:
        if not self._unheard:
            return
        if op.name == "read_back":
            self._reading.add(op.call["token"])
        for token, (claim, since) in list(self._unheard.items()):
            if claim.who == op.who and token not in self._reading:
                self._judge(token, since, op)

    def fault(self, line: int, record: Record) -> None:
        """A node that stood still begins anew when it goes on."""
        for token, (claim, _) in list(self._unheard.items()):
            if claim.node == record.get("node"):
                self._unheard[token] = (claim, self.world.now.t)

    def process(self, line: int, record: Record) -> None:
        if record["what"] in {"started", "ended"}:
            for token, (claim, _) in list(self._unheard.items()):
                if claim.node == record["node"]:
                    del self._unheard[token]

    def _begin_anew(self, token: str) -> None:
        """Nobody asks for it any more."""
        self._reading.discard(token)
        if token in self._unheard:
            self._unheard[token] = (self._unheard[token][0], self.world.now.t)

    def _judge(self, token: str, since: float, op: Op) -> None:
        bound, waited = self.world.bound("read_back"), self.world.now.t - since
        if bound is None or waited <= bound:
            return
        claim, _ = self._unheard.pop(token)
        story = (
            f"{claim.node} heard nothing of a claim, and has not asked for it for {waited:.3f} s; "
            f"{bound} s are allowed"
        )
        self.accuse(None, (*claim.lines, op.line), story)


@dataclass(eq=False)
class NothingLeft(Invariant, name="M3", needs={"claims", "faults", "processes"}):
    """Whoever holds a job in calm can renew, settle, or give back."""

    _told: set[str] = noted(set)

    def process(self, line: int, record: Record) -> None:
        if record["what"] == "told":
            self._told.add(record["node"])
        elif record["what"] == "started":
            self._told.discard(record["node"])

    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += self._is_calm(claim)

    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        if end.how != "reap" or claim is None or claim.undone or not self._is_calm(claim):
            return
        if claim.op.lo.seq <= self.world.expired_at.seq or self._may_have_been_left(claim):
            return
        story = (
            f"the lease of {claim.node} on job {claim.job} (attempt {claim.attempt}) ran out, and "
            "nothing had gone wrong"
        )
        self.accuse(claim.job, (*claim.op.lines, claim.lease_line, *end.op.lines), story)

    def _is_calm(self, claim: Claim) -> bool:
        calm = self.world.calm_since
        return calm is not None and claim.op.asked.t >= calm

    def _may_have_been_left(self, claim: Claim) -> bool:
        """Handlers that do not stop when they are told may be left behind by a node that leaves."""
        return bool(self.world.header.get("stop_seconds")) and claim.node in self._told
