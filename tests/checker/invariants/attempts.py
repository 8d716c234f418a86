"""S10: attempts are counted, one by one, and there are no more than the budget; M1: phases."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.checker.facts import Claim, End, Job, Op, Record
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import Seen, data_of
from tests.checker.world import World


def budget_of(world: World, kind: str) -> int | None:
    budgets: dict[str, int] = world.header.get("budgets") or {}
    return budgets.get(kind, budgets.get(""))


@dataclass(eq=False)
class CountedClaims(Invariant, name="S10", needs={"claims"}):
    _maybe_forgiven: Counter[int] = noted(Counter)

    def asked(self, op: Op) -> None:
        if self._forgives(op):
            self._maybe_forgiven[op.call["job"]] += 1

    def answered(self, op: Op, status: str) -> None:
        if self._forgives(op):
            self._maybe_forgiven[op.call["job"]] -= 1

    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += 1
        wrong = self._wrong_number(claim, job) or self._beyond_budget(job)
        if wrong:
            before = job.claim.op.lines if job.claim else ()
            story = f"{claim.node} claimed job {job.id} as attempt {claim.attempt}; {wrong}"
            self.accuse(job.id, (*before, *claim.op.lines), story)

    def _wrong_number(self, claim: Claim, job: Job) -> str:
        known = [one for one in job.claims.values() if not one.undone]
        if any(one.attempt == claim.attempt and one.token != claim.token for one in known):
            return "that attempt was had before"
        latest = job.claim
        if latest is not None and claim.attempt < latest.attempt:
            late = latest.op.hi.seq < claim.op.lo.seq
            return f"attempt {latest.attempt} was before it" if late else ""
        others = self.world.unsure_claims - {claim.token}
        if job.maybe_lost or (others and not self.world.commits):
            return ""
        if claim.attempt != job.attempt + 1:
            return f"attempt {job.attempt + 1} was next"
        return ""

    def _beyond_budget(self, job: Job) -> str:
        own = job.made.call.get("max_attempts") if job.made else None
        if job.made is None or job.maybe_lost or job.unsure:
            return ""
        budget = own or budget_of(self.world, job.kind)
        used = job.used + 1 - self._maybe_forgiven[job.id]
        return f"its budget is {budget}" if budget is not None and used > budget else ""

    def _forgives(self, op: Op) -> bool:
        if self.world.commits:
            return False
        return op.name == "give_back" or (op.name == "settle" and bool(op.call.get("forgive")))


@dataclass(eq=False)
class CountedSeen(Invariant, name="S10", needs={"events"}):
    _suspects: dict[int, tuple[tuple[int, ...], str]] = noted(dict)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        if not seen.is_claim(record) or seen.in_hand:
            return
        self.cases += 1
        attempt = data_of(record).get("attempt")
        if attempt != seen.attempt + 1:
            story = f"attempt {attempt} of job {seen.id}; attempt {seen.attempt + 1} was next"
            self.accuse(seen.id, (seen.claim_line, line), story)
        budget = budget_of(self.world, seen.kind)
        if budget is not None and seen.used + 1 > budget and seen.id not in self._suspects:
            story = f"attempt {attempt} of job {seen.id}; the budget of its kind is {budget}"
            self._suspects[seen.id] = (seen.claim_line, line), story

    def final_job(self, line: int, record: Record) -> None:
        budget, seen = record.get("max_attempts"), self.world.seen.get(record["id"])
        if budget is None or seen is None:
            return
        self._suspects.pop(record["id"], None)  # this is its budget, with all that was forgiven
        if seen.attempt > budget:
            story = f"attempt {seen.attempt} of job {seen.id}, whose budget is {budget}"
            self.accuse(seen.id, (seen.claim_line, line), story)

    def close(self) -> None:
        for job_id, (lines, story) in self._suspects.items():
            self.accuse(job_id, lines, story)


@dataclass(eq=False)
class BegunOnce(Invariant, name="S10", needs={"handlers"}):
    _begun: dict[tuple[int, int, str, str], int] = noted(dict)

    def begin(self, line: int, record: Record) -> None:
        self.cases += 1
        phase, token = str(record.get("phase", "")), str(record.get("token", ""))
        key = (record["job"], record["attempt"], phase, token)
        first = self._begun.setdefault(key, line)
        if first != line and (token or not self.world.failovers):
            story = f"attempt {record['attempt']} of job {record['job']} was begun twice"
            self.accuse(record["job"], (first, line), story)


@dataclass(eq=False)
class WholeBudget(Invariant, name="S10", needs={"claims", "clients", "handlers"}):
    """Who asks for another try gets one while there are some left."""

    _wants: dict[str, int] = noted(dict)  # by token: the line that says so

    def stopped(self, line: int, record: Record) -> None:
        if record["outcome"] == "retry" and "token" in record:
            self._wants[f"{record['job']} {record['token']}"] = line

    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        line = self._wants.pop(f"{job.id} {claim.token}", 0) if claim else 0
        if claim is None or not line or end.state != "failed" or end.how != "settle":
            return
        own = job.made.call.get("max_attempts") if job.made else None
        budget = own or budget_of(self.world, job.kind)
        if job.made is None or budget is None or job.maybe_lost or job.unsure or claim.undone:
            return
        self.cases += 1
        if job.used < budget:
            story = (
                f"job {job.id} failed with attempt {claim.attempt}, which wanted another; "
                f"{job.used} of its {budget} attempts were used"
            )
            self.accuse(job.id, (*claim.op.lines, line, *end.op.lines), story)


@dataclass(eq=False)
class PhasesOnce(Invariant, name="M1", needs={"claims", "handlers"}):
    _finished: dict[tuple[int, str], tuple[Op, int]] = noted(dict)

    def wrote(self, op: Op, job: Job, claim: Claim | None) -> None:
        if op.name == "phase":
            attempt = 0 if claim is None else claim.attempt
            self._finished[job.id, str(op.call.get("name"))] = (op, attempt)

    def begin(self, line: int, record: Record) -> None:
        if "phase" not in record:
            return
        self.cases += 1
        job_id = record["job"]
        op, attempt = self._finished.get((job_id, record["phase"]), (None, 0))
        if record["attempt"] < attempt:
            return  # by who has lost the job and does not know it yet: S16 judges that
        if op is not None and not self.world.job(job_id).maybe_lost:
            story = f"phase {record['phase']} of job {job_id} had finished, and was begun again"
            self.accuse(job_id, (*op.lines, line), story)
