"""S12: of one target one job is in hand, in order, and none while it is halted."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import Claim, Job, Op, Record, moment
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import Seen


@dataclass(eq=False)
class Targets(Invariant, name="S12", needs={"claims", "clients"}):
    _waiting: dict[str, dict[int, Job]] = noted(dict)  # plain jobs that were never claimed

    def made(self, op: Op, job: Job) -> None:
        target = op.call.get("target")
        plain = not op.call.get("delay_seconds") and not op.call.get("hold")
        is_new = op.result.get("new") is not False
        if target is not None and plain and is_new and job.attempt == 0:
            self._waiting.setdefault(target, {})[job.id] = job

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover" and record.get("lost_since") is not None:
            self._waiting.clear()  # their ids may be those of other jobs by now

    def asked(self, op: Op) -> None:
        if "job" in op.call and op.name in {"cancel", "pause", "resume", "release"}:
            self._forget(self.world.job(op.call["job"]))

    def claimed(self, claim: Claim, job: Job) -> None:
        target = job.target
        if target is None:
            return
        self.cases += 1
        waiting = self._waiting.get(target, {})
        if job.id in waiting:
            self._judge_order(claim, job, waiting)
        self._judge_halt(claim, job, target)
        self._judge_hold(claim, job, target)
        self._forget(job)

    def _judge_hold(self, claim: Claim, job: Job, target: str) -> None:
        if claim.end is not None:
            return
        for mate in self.world.held_targets.get(target, set()) - {job.id}:
            other = self.world.held[mate]
            if not self.world.may_have_ended(other):
                story = (
                    f"{claim.node} claimed job {job.id} of target {target!r} while job {mate} of "
                    f"it was in the hand of {other.node}"
                )
                self.accuse(job.id, (*other.op.lines, *claim.op.lines), story)

    def _judge_order(self, claim: Claim, job: Job, waiting: dict[int, Job]) -> None:
        if self.world.stepped or self.world.unsure_claims - {claim.token}:
            return  # by the store's clock the order may be another; or what seems to wait is taken
        made, rank = job.made, priority(job)
        for other in waiting.values():
            first = other.made
            if first is None or made is None or other is job or other.kind != job.kind:
                continue
            if first.hi.seq < made.lo.seq and priority(other) >= rank and other.plain:
                story = (
                    f"{claim.node} claimed job {job.id} of target {job.target!r} before job "
                    f"{other.id}, which was made earlier and waited"
                )
                self.accuse(job.id, (*first.lines, *made.lines, *claim.op.lines), story)
                return

    def _judge_halt(self, claim: Claim, job: Job, target: str) -> None:
        if job.attempt or claim.attempt > 1:
            return  # it may have had the target before it was halted
        for mate in self.world.targets.get(target, ()):
            other = self.world.jobs[mate]
            halt = halted_by(other)
            if other is not job and halt is not None and halt.hi.seq < claim.op.lo.seq:
                story = (
                    f"{claim.node} claimed job {job.id} of target {target!r}, which job {mate} "
                    "had halted"
                )
                self.accuse(job.id, (*halt.lines, *claim.op.lines), story)

    def _forget(self, job: Job) -> None:
        if job.target is not None:
            waiting = self._waiting.get(job.target, {})
            waiting.pop(job.id, None)
            if not waiting:
                self._waiting.pop(job.target, None)


def priority(job: Job) -> int:
    return int(job.made.call.get("priority") or 0) if job.made else 0


def halted_by(job: Job) -> Op | None:
    """What surely made this job halt its target, if nobody asked to let it go on."""
    if job.cleared or job.unsure or job.unsure_cancels or job.deleted is not None:
        return None
    if job.rest is not None:
        return job.rest[1] if job.rest[0] == "paused" else None
    last = job.last_end
    if last is None or job.last_state != "failed" or job.resumed.seq >= last.lo.seq:
        return None
    return last


@dataclass(eq=False)
class TargetsSeen(Invariant, name="S12", needs={"events"}):
    _members: dict[str, set[int]] = noted(dict)  # that are in hand or halt

    def event(self, line: int, record: Record, seen: Seen) -> None:
        target = seen.target
        if target is None or not seen.id:
            return
        members = self._members.setdefault(target, set())
        at = moment(record["at"])
        if seen.is_claim(record):
            self.cases += 1
            self._judge_halt(line, seen, members, at)
        self._judge_hold(line, seen, members, at)
        members.add(seen.id)
        self._members[target] = {one for one in members if self._matters(one)} | {seen.id}

    def _judge_hold(self, line: int, seen: Seen, members: set[int], at: float) -> None:
        """Both in hand, for longer than events may be out of order."""
        slack = self.world.event_slack
        if not seen.in_hand or at - seen.claimed_at <= slack:
            return
        for one in members:
            other = self.world.seen[one]
            if one != seen.id and other.in_hand and at - other.claimed_at > slack:
                story = f"jobs {one} and {seen.id} of target {seen.target!r} were in hand at once"
                self.accuse(seen.id, (other.claim_line, seen.claim_line, line), story)

    def _judge_halt(self, line: int, seen: Seen, members: set[int], at: float) -> None:
        if seen.has_target or seen.attempt:
            return
        for one in members:
            other = self.world.seen[one]
            if one != seen.id and other.halts and at - other.since > self.world.event_slack:
                story = f"job {seen.id} of target {seen.target!r} began; job {one} had halted it"
                self.accuse(seen.id, (other.line, line), story)

    def _matters(self, job_id: int) -> bool:
        seen = self.world.seen[job_id]
        return seen.in_hand or seen.halts
