"""S16: whoever may have lost a job does nothing more about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.checker.facts import Claim, Op, Record
from tests.checker.invariant import Invariant, noted
from tests.checker.world import CALM_FAULTS


@dataclass(eq=False)
class InsideTheLease(
    Invariant, name="S16", needs={"claims", "handlers"}, wants=("margin_seconds",)
):
    _excused: set[tuple[int, int, float]] = noted(set)

    def begin(self, line: int, record: Record) -> None:
        self._judge_right(line, record)
        self._judge(line, record, "began")

    def effect(self, line: int, record: Record) -> None:
        self._judge(line, record, "had an effect")

    def stopped(self, line: int, record: Record) -> None:
        self._judge(line, record, "still ran")

    def _judge_right(self, line: int, record: Record) -> None:
        """Who begins has a claim: its node has heard of it."""
        job, token = self.world.job(record["job"]), record.get("token")
        if token is None or token in self.world.unsure_claims or job.maybe_lost:
            return
        claim = job.claims.get(token)
        if claim is None or claim.attempt != record["attempt"]:
            what = "it has no claim" if claim is None else f"it has attempt {claim.attempt}"
            story = f"{record['who']} began attempt {record['attempt']} of job {job.id}; {what}"
            self.accuse(job.id, (*(claim.op.lines if claim else ()), line), story)

    def _judge(self, line: int, record: Record, did: str) -> None:
        claim = self._claim_of(record)
        if claim is None:
            return
        self.cases += 1
        header = self.world.header
        deadline = claim.trusted_from + claim.lease - header["margin_seconds"]
        t, stopping = self.world.now.t, header.get("stop_seconds", 0.0)
        if stopping:  # its own time, which stands still while its node does
            deadline += stopping + self.world.frozen_seconds(claim.node, deadline, t)
        if t <= deadline + self.world.slack or self._is_excused(claim, deadline, record):
            return
        story = (
            f"attempt {claim.attempt} of job {claim.job} on {claim.node} {did} "
            f"{t - deadline:.3f} s after it had to stop: its lease could have run out"
        )
        self.accuse(claim.job, (*claim.op.lines, claim.lease_line, line), story)

    def _claim_of(self, record: Record) -> Claim | None:
        job = self.world.jobs.get(record["job"])
        if job is None:
            return None
        if "token" in record:
            return job.claims.get(record["token"])
        for claim in job.claims.values():
            if claim.attempt == record["attempt"] and f"node:{claim.node}" == record["who"]:
                return claim
        return None

    def _is_excused(self, claim: Claim, deadline: float, record: Record) -> bool:
        """One step that was under way when its node was frozen, and its end. Where the lease stood
        all the same and was renewed, it may happen again.
        """
        if self.world.has_not_looked(claim.node, deadline, self.world.now.t, self.world.look):
            return True
        if not self.world.straddles(claim.node, deadline, self.world.now.t):
            return False
        if record["record"] == "end":
            return True
        once = (claim.job, claim.attempt, deadline)
        if once in self._excused:
            return False
        self._excused.add(once)
        return True


@dataclass(eq=False)
class OneHandlerAtATime(Invariant, name="S16", needs={"handlers"}):
    _latest: dict[int, tuple[int, str, float, int]] = noted(dict)
    _begun: dict[tuple[int, int], tuple[float, float]] = noted(dict)
    _excused: set[tuple[int, int]] = noted(set)

    def begin(self, line: int, record: Record) -> None:
        self.cases += 1
        attempt, latest = record["attempt"], self._latest.get(record["job"])
        begun = (self.world.now.t, self._forward_at_claim(record))
        self._begun.setdefault((record["job"], attempt), begun)
        if latest is None or attempt > latest[0]:
            given = (attempt, record["who"], self.world.now.t, line)
            self._latest[record["job"]] = given
        elif attempt < latest[0]:
            self._judge(line, record)

    def _forward_at_claim(self, record: Record) -> float:
        """How far the store's clock had been put forward when its lease began: the reply that
        brought it may have been long under way.
        """
        job = self.world.jobs.get(record["job"])
        claim = None if job is None else job.claims.get(record.get("token", ""))
        return self.world.forward if claim is None else claim.forward

    def effect(self, line: int, record: Record) -> None:
        self._judge(line, record)

    def stopped(self, line: int, record: Record) -> None:
        self._judge(line, record)

    def _judge(self, line: int, record: Record) -> None:
        attempt, latest = record["attempt"], self._latest.get(record["job"])
        if latest is None or attempt >= latest[0] or self.world.failovers:
            return
        node = str(record["who"]).removeprefix("node:")
        once = (record["job"], attempt)
        begun, forward = self._begun.get(once, (self.world.now.t, self.world.forward))
        frozen = self.world.straddles(node, latest[2], self.world.now.t)
        frozen = frozen or self.world.frozen_seconds(node, begun, latest[2]) > 0
        if record["record"] == "end" and self._takes_its_time(node, latest[2]):
            return
        if self.world.forward > forward:
            return  # the lease ended early, by a clock that nobody but the store goes by
        if self.world.has_not_looked(node, latest[2], self.world.now.t, self.world.look):
            return
        if frozen and (record["record"] == "end" or once not in self._excused):
            self._excused.add(once)
            return
        story = (
            f"attempt {attempt} of job {record['job']} still did something on {node} after "
            f"attempt {latest[0]} had begun"
        )
        self.accuse(record["job"], (latest[3], line), story)

    def _takes_its_time(self, node: str, next_begun: float) -> bool:
        """It was told to stop before that. Its own time stands still while its node does."""
        t, stopping = self.world.now.t, float(self.world.header.get("stop_seconds", 0.0))
        if not stopping:
            return False
        return t <= next_begun + stopping + self.world.frozen_seconds(node, next_begun, t)


@dataclass(eq=False)
class FinishedWork(Invariant, name="L9", needs={"handlers", "jobs"}):
    _done: dict[int, tuple[int, int]] = noted(dict)  # job: attempt that succeeded, line
    _claimed: dict[str, float] = noted(dict)  # when those were that have begun, by token
    _successes: int = field(default=0, init=False)
    _wasted: list[tuple[int, int]] = noted(list)
    _asked: set[int] = noted(set)

    def asked(self, op: Op) -> None:
        if op.name in {"cancel", "pause", "clear"}:
            self._asked.add(op.call["job"])

    def fault(self, line: int, record: Record) -> None:
        if record["what"] not in CALM_FAULTS:
            self._done.clear()  # what had not been written yet may be lost with good reason

    def begin(self, line: int, record: Record) -> None:
        job, token = self.world.jobs.get(record["job"]), str(record.get("token"))
        claim = None if job is None else job.claims.get(token)
        self._claimed.setdefault(token, self.world.now.t if claim is None else claim.op.lo.t)

    def stopped(self, line: int, record: Record) -> None:
        calm = self.world.calm_since
        if record["outcome"] != "success" or calm is None or record.get("phase"):
            return
        if self._claimed.get(str(record.get("token")), calm) < calm:
            return  # its claim may be one of those that the last faults have undone
        self._successes += 1
        earlier = self._done.get(record["job"])
        if earlier is not None:
            self._wasted.append((record["job"], earlier[1]))
        self._done[record["job"]] = (record["attempt"], line)

    def final_job(self, line: int, record: Record) -> None:
        done = self._done.get(record["id"])
        if done is None or record["id"] in self._asked:
            return
        if record["state"] != "succeeded":
            self._wasted.append((record["id"], done[1]))

    def close(self) -> None:
        self.cases = self._successes
        wasted = [one for one in self._wasted if one[0] not in self._asked]
        if wasted and len(wasted) * 1000 >= self._successes:
            story = f"of {self._successes} successes of handlers {len(wasted)} were thrown away"
            self.accuse(wasted[0][0], tuple(line for _, line in wasted[:5]), story)
