"""L1 to L3: once the faults are over, jobs end, lost ones come back, duties are had. Bounds count
from the healing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.checker.facts import ENDED, Claim, End, Job, Op, Record, moment
from tests.checker.invariant import Invariant, noted


@dataclass(eq=False)
class AllEnd(Invariant, name="L1", needs={"jobs", "faults"}, wants=("bounds.end",)):
    _final: tuple[int, Record, float | None] | None = field(default=None, init=False)
    _jobs: list[tuple[int, Record]] = noted(list)
    _halted: set[str] = noted(set)
    _last_enqueued: dict[int, float] = noted(dict)

    def made(self, op: Op, job: Job) -> None:
        self._last_enqueued[job.id] = op.hi.t

    def final(self, line: int, record: Record) -> None:
        self._final = (line, record, self.world.calm_since)

    def final_job(self, line: int, record: Record) -> None:
        state, target = record["state"], record.get("target")
        if target and (state == "paused" or (state == "failed" and not record.get("cleared_at"))):
            self._halted.add(target)
        if state not in ENDED:
            self._jobs.append((line, record))
        else:
            self.cases += 1

    def close(self) -> None:
        bound = self.world.bound("end")
        if self._final is None or bound is None or self._final[1].get("queue_paused"):
            return
        calm = self._final[2]
        if calm is None or self.world.now.t - calm < bound:
            return
        for line, record in self._jobs:
            since = self.world.now.t - self._last_enqueued.get(record["id"], calm)
            if since >= bound and self._should_have_ended(record, bound):
                self.cases += 1
                waited = self.world.now.t - calm
                story = f"job {record['id']} is {record['state']} {waited:.1f} s after the healing"
                self.accuse(record["id"], (line,), story)

    def _should_have_ended(self, record: Record, bound: float) -> bool:
        if record["state"] in {"pending", "paused"} or record.get("target") in self._halted:
            return False
        if record["state"] != "queued" or record.get("run_at") is None or self._final is None:
            return True
        return moment(record["run_at"]) <= moment(self._final[1]["at"]) - bound


class Since(NamedTuple):
    """When something began, the line that says so, and when the lease in question was last made."""

    t: float
    line: int
    leased_from: float


@dataclass(eq=False)
class Reclaimed(Invariant, name="L2", needs={"claims", "faults"}, wants=("bounds.reclaim",)):
    _orphans: dict[int, tuple[Claim, Since]] = noted(dict)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover":
            self._orphans.clear()
        if record["what"] != "kill":
            return
        for job in self.world.jobs.values():
            claim = job.claim
            if claim is None or claim.end is not None or claim.maybe_ends:
                continue
            if claim.node == record.get("node"):
                leased_from = min(claim.leased_from, self.world.now.t)
                self._orphans[job.id] = (claim, Since(self.world.now.t, line, leased_from))

    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        orphan = self._orphans.pop(job.id, None)
        if orphan is not None:
            self._judge(*orphan, self.world.now.t, end.op.done_line)

    def claimed(self, claim: Claim, job: Job) -> None:
        orphan = self._orphans.pop(job.id, None)
        if orphan is not None:
            self._judge(*orphan, self.world.now.t, claim.op.done_line)

    def close(self) -> None:
        for claim, since in self._orphans.values():
            self._judge(claim, since, self.world.now.t, 0)

    def _judge(self, claim: Claim, since: Since, t: float, until: int) -> None:
        self.cases += 1
        bound, calm = self.world.bound("reclaim"), self.world.calm_since
        if bound is None or calm is None or claim.undone:
            return
        if claim.end is None and not until and self.world.may_have_ended(claim):
            return  # by an operation that nobody has heard of
        late = t - max(since.t, calm) - bound - self.world.put_back_since(since.leased_from)
        if late > 0:
            story = (
                f"job {claim.job} was still in the hand of {claim.node}, which had died, "
                f"{late:.3f} s after it should have been taken from it"
            )
            self.accuse(claim.job, (*claim.op.lines, since.line, until), story)


@dataclass(eq=False)
class DutyHadAgain(Invariant, name="L3", needs={"duties", "faults"}, wants=("bounds.duty",)):
    _holders: dict[str, Op] = noted(dict)
    _leased_from: dict[str, float] = noted(dict)
    _free: dict[str, Since] = noted(dict)

    def fault(self, line: int, record: Record) -> None:
        for duty, op in self._holders.items():
            if record["what"] == "kill" and op.node == record.get("node"):
                since = Since(self.world.now.t, line, self._leased_from[duty])
                self._free.setdefault(duty, since)

    def duty(self, op: Op) -> None:
        duty = op.call["duty"]
        if op.name == "release_duty":
            self._free.setdefault(duty, Since(op.hi.t, op.done_line, op.hi.t))
            return
        self._leased_from[duty] = op.lo.t
        if op.name == "take_duty":
            self._holders[duty] = op
            free = self._free.pop(duty, None)
            if free is not None:
                self._judge(duty, free, op.done_line)

    def close(self) -> None:
        for duty, free in self._free.items():
            self._judge(duty, free, 0)

    def _judge(self, duty: str, since: Since, until: int) -> None:
        self.cases += 1
        bound, calm = self.world.bound("duty"), self.world.calm_since
        if bound is None or calm is None:
            return
        bound += self.world.put_back_since(since.leased_from)
        late = self.world.now.t - max(since.t, calm) - bound
        if late > 0:
            story = f"nobody had duty {duty} for {late + bound:.3f} s; {bound} s are allowed"
            self.accuse(None, (since.line, until), story)
