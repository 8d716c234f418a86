"""S4 to S7 by what nodes asked of the store: whose a job is, and that it stays so for its lease."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import ENDED, Claim, End, Job, Op
from tests.checker.invariant import Invariant, noted

ENDING = frozenset({"settle", "give_back"})


class OneOwner(Invariant, name="S4", needs={"claims"}):
    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += 1
        holder = job.claim
        if holder is None or holder.token == claim.token or holder.attempt > claim.attempt:
            return
        if holder.end is not None or self.world.may_have_ended(holder):
            return
        story = (
            f"{claim.node} claimed job {job.id} as attempt {claim.attempt} while it was in the "
            f"hand of {holder.node} (attempt {holder.attempt}), which nobody had ended"
        )
        self.accuse(job.id, (*holder.op.lines, *claim.op.lines), story)


@dataclass(eq=False)
class FreshTokens(Invariant, name="S5", needs={"claims"}):
    _used: dict[str, tuple[int | str, int]] = noted(dict)

    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += 1
        op_id, line = self._used.setdefault(claim.token, (claim.op.id, claim.op.line))
        if op_id != claim.op.id:
            story = f"job {job.id} was claimed under a token that an earlier claim had"
            self.accuse(job.id, (line, *claim.op.lines), story)


class Fencing(Invariant, name="S6", needs={"claims"}):
    def wrote(self, op: Op, job: Job, claim: Claim | None) -> None:
        self.cases += 1
        if claim is None:
            self._judge_stranger(op, job)
            return
        later = self._claimed_since(op, job, claim)
        if later is not None:
            story = (
                f"{op.name} of job {job.id} by {op.node} was taken under the token of attempt "
                f"{claim.attempt}, after {later.node} had claimed it as attempt {later.attempt}"
            )
            self.accuse(job.id, (*claim.op.lines, *later.op.lines, *op.lines), story)
        elif self._over_before(op, claim) and not self._is_second_end(op, job):
            end = claim.end
            assert end is not None
            story = (
                f"{op.name} of job {job.id} by {op.node} was taken under the token of attempt "
                f"{claim.attempt}, which had ended ({end.outcome})"
            )
            self.accuse(job.id, (*claim.op.lines, *end.op.lines, *op.lines), story)

    def _judge_stranger(self, op: Op, job: Job) -> None:
        if job.maybe_lost or op.call["token"] in self.world.unsure_claims:
            return
        story = f"{op.name} of job {job.id} was taken under a token under which nobody claimed it"
        self.accuse(job.id, op.lines, story)

    def _claimed_since(self, op: Op, job: Job, claim: Claim) -> Claim | None:
        latest = job.claim
        if latest is None or latest is claim or latest.undone or latest.token == claim.token:
            return None
        if latest.attempt < claim.attempt:
            return None
        return latest if latest.op.hi.seq < op.lo.seq else None

    def _over_before(self, op: Op, claim: Claim) -> bool:
        if claim.end is None or claim.undone:
            return False
        if op.name in ENDING:
            return claim.end.op.id != op.id  # it ends once, in whatever order
        return claim.end.op.hi.seq < op.lo.seq

    def _is_second_end(self, op: Op, job: Job) -> bool:
        """That is S8's."""
        return op.call.get("state") in ENDED and job.last_end is not None


class NoEarlySteal(Invariant, name="S7", needs={"claims"}):
    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        if end.how != "reap" or claim is None or claim.undone:
            return
        self.cases += 1
        self._judge(claim, end)

    def wrote(self, op: Op, job: Job, claim: Claim | None) -> None:
        """A renewal that was under way when the job was reaped: if it was taken, it was before."""
        if op.name != "renew" or claim is None or claim.end is None or claim.end.how != "reap":
            return
        if claim.undone or claim.end.op.hi.seq < op.lo.seq:
            return  # S6 judges it
        early = op.lo.t + op.call["lease_seconds"] - self.world.slack - claim.end.op.hi.t
        if early > 0 and op.lo.seq > self.world.expired_at.seq:
            self._tell(claim, claim.end, early, op.line)

    def _judge(self, claim: Claim, end: End) -> None:
        early = self.world.expires(claim) - end.op.hi.t
        if early > 0:
            self._tell(claim, end, early, claim.lease_line)

    def _tell(self, claim: Claim, end: End, early: float, line: int) -> None:
        story = (
            f"{end.op.node} ended attempt {claim.attempt} of job {claim.job} as lost {early:.3f} s "
            f"before the lease of {claim.node} had run out"
        )
        self.accuse(claim.job, (*claim.op.lines, line, *end.op.lines), story)
