"""S8 and S9: a job ends once, and goes only where it may."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import ENDED, Claim, End, Job, Op, Record
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import BECOMES, Seen

# As docs/states.md has it.
EDGES = frozenset(
    {
        *(("pending", "queued"), ("pending", "canceled")),
        *(("queued", "assigned"), ("queued", "running"), ("queued", "canceled")),
        ("queued", "paused"),
        *(("assigned", "running"), ("assigned", "queued"), ("assigned", "succeeded")),
        *(("assigned", "failed"), ("assigned", "canceled"), ("assigned", "paused")),
        *(("running", "queued"), ("running", "succeeded"), ("running", "failed")),
        *(("running", "canceled"), ("running", "paused")),
        *(("paused", "queued"), ("paused", "canceled"), ("failed", "queued")),
    }
)
LEASED = frozenset({"assigned", "running"})
ANY = frozenset({"pending", "queued", "assigned", "running", "paused", *ENDED})
# In which states of a job an event may tell of it.
AFTER = {
    "job.enqueued": frozenset({""}),
    "job.released": frozenset({"pending"}),
    "job.assigned": frozenset({"queued"}),
    "job.started": frozenset({"queued", "assigned"}),
    "job.progress": LEASED,
    "job.phase_completed": LEASED,
    "job.retrying": LEASED,
    "job.requeued": LEASED,
    "job.succeeded": LEASED,
    "job.failed": LEASED,
    "job.canceled": LEASED | {"pending", "queued", "paused"},
    "job.paused": LEASED | {"queued"},
    "job.resumed": frozenset({"paused", "failed"}),
    "job.cleared": frozenset({"failed"}),
    "job.webhook_delivered": ANY | {"deleted"},
    "job.webhook_failed": ANY | {"deleted"},
    "job.stale": ENDED,
    "job.deleted": ANY,  # S19 judges it
}
CLAIMS = frozenset({"job.assigned", "job.started"})


class OneEnd(Invariant, name="S8", needs={"claims", "clients"}):
    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        if end.state in ENDED:
            self._end(end.op, end.state, job)

    def controlled(self, op: Op, job: Job) -> None:
        if op.result.get("state") == "canceled" and op.name in {"cancel", "clear"}:
            self._end(op, "canceled", job)

    def claimed(self, claim: Claim, job: Job) -> None:
        last = self._stands(job)
        if last is None or last.name in {"cancel", "clear"}:
            return  # the latter is S15's
        if last.hi.seq < claim.op.lo.seq:
            story = f"{claim.node} claimed job {job.id}, which had ended ({job.last_state})"
            self.accuse(job.id, (*last.lines, *claim.op.lines), story)

    def final_job(self, line: int, record: Record) -> None:
        job = self.world.jobs.get(record["id"])
        last = self._stands(job) if job else None
        if job is not None and last is not None and record["state"] != job.last_state:
            story = f"job {job.id} had ended ({job.last_state}); in the end it is {record['state']}"
            self.accuse(job.id, (*last.lines, line), story)

    def _end(self, op: Op, state: str, job: Job) -> None:
        self.cases += 1
        last = self._stands(job)
        if last is not None and last is not op:
            story = f"job {job.id} ended twice: {job.last_state}, then {state}"
            self.accuse(job.id, (*last.lines, *op.lines), story)

    def _stands(self, job: Job) -> Op | None:
        """Its end, if nobody has asked to resume it since."""
        last = job.last_end
        if last is None or job.unsure or job.resumed.seq >= last.lo.seq:
            return None
        return last


class OneEndSeen(Invariant, name="S8", needs={"events"}):
    def event(self, line: int, record: Record, seen: Seen) -> None:
        state = BECOMES.get(record["type"])
        if state in ENDED:
            self.cases += 1
        if seen.state not in ENDED or state is None or state == "deleted":
            return
        if record["type"] == "job.resumed" and seen.state == "failed":
            return
        story = f"job {seen.id} had ended ({seen.state}); then came {record['type']}"
        self.accuse(seen.id, (seen.line, line), story)


class LegalSteps(Invariant, name="S9", needs={"claims", "clients"}):
    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += 1
        if job.rest is not None and job.rest[1].hi.seq < claim.op.lo.seq:
            state, op = job.rest
            story = f"{claim.node} claimed job {job.id}, which was {state}"
            self.accuse(job.id, (*op.lines, *claim.op.lines), story)


class LegalStepsSeen(Invariant, name="S9", needs={"events"}):
    def event(self, line: int, record: Record, seen: Seen) -> None:
        allowed = AFTER.get(record["type"])
        if allowed is None:
            return
        self.cases += 1
        if seen.state in allowed or self._is_judged_elsewhere(record, seen):
            return
        state = seen.state or "not yet made"
        story = f"{record['type']} of job {seen.id}, which was {state}"
        self.accuse(seen.id, (seen.line, line), story)

    def _is_judged_elsewhere(self, record: Record, seen: Seen) -> bool:
        if seen.state in ENDED:
            return record["type"] in BECOMES  # S8
        return seen.in_hand and seen.is_claim(record)  # S4


@dataclass(eq=False)
class LegalEdges(Invariant, name="S9", needs={"edges"}):
    _states: dict[int, tuple[str, int]] = noted(dict)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover" and record.get("lost_since") is not None:
            self._states.clear()

    def edge(self, line: int, record: Record) -> None:
        self.cases += 1
        job, before, after = record["job"], record.get("from"), record["to"]
        was, last = self._states.get(job, (before, 0))
        legal = after in {"pending", "queued"} if before is None else (before, after) in EDGES
        if not legal or was != before:
            since = f", and had been {was}" if was != before else ""
            self.accuse(job, (last, line), f"job {job} went from {before} to {after}{since}")
        self._states[job] = (after, line)
