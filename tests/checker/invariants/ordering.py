"""M4: which jobs a claim takes."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import Claim, Job, Op, Record
from tests.checker.invariant import Invariant, noted
from tests.checker.invariants.targets import priority


@dataclass(eq=False)
class InOrder(Invariant, name="M4", needs={"claims", "clients"}):
    """Of jobs that could have been claimed at once: plain ones, without a target or a limit. Where
    nobody tells of commits, nobody knows what stood in the queue at a claim.
    """

    _waiting: dict[int, dict[int, Op]] = noted(dict)  # by priority, in the order of their making

    def made(self, op: Op, job: Job) -> None:
        odd = op.call.get("delay_seconds") or op.call.get("hold") or op.call.get("target")
        capped = op.call.get("kind") in (self.world.header.get("caps") or {})
        is_new = op.result.get("new") is not False
        if self.world.commits and is_new and not (odd or capped or job.attempt):
            rank = int(op.call.get("priority") or 0)
            self._waiting.setdefault(rank, {})[job.id] = op

    def asked(self, op: Op) -> None:
        if op.name in {"cancel", "pause"}:
            self._forget(self.world.job(op.call["job"]))

    def controlled(self, op: Op, job: Job) -> None:
        """It may have been asked for before the job was made: of one with that id that was lost."""
        if op.name in {"cancel", "pause"}:
            self._forget(job)

    def deleted(self, op: Op, job: Job) -> None:
        self._forget(job)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] in {"failover", "clock"}:
            self._waiting.clear()  # who was there first nobody can say

    def claimed(self, claim: Claim, job: Job) -> None:
        rank = priority(job)
        made = self._waiting.get(rank, {}).get(job.id)
        if made is None:
            return
        self.cases += 1
        for other_rank, jobs in self._waiting.items():
            first = next(iter(jobs), job.id)
            if other_rank > rank or (other_rank == rank and first != job.id):
                story = f"{claim.node} claimed job {job.id} before job {first}, which was due first"
                if first != job.id:
                    lines = (*jobs[first].lines, *made.lines, *claim.op.lines)
                    self.accuse(job.id, lines, story)
        self._forget(job)

    def _forget(self, job: Job) -> None:
        self._waiting.get(priority(job), {}).pop(job.id, None)
