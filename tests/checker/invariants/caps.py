"""S11: how many may run at once."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

from tests.checker.facts import Claim, Job, Record, moment
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import Seen


class Caps(Invariant, name="S11", needs={"claims"}, wants=("caps",)):
    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += 1
        caps: dict[str, int] = self.world.header["caps"]
        held = self.world.held
        self._compare(claim, job, caps.get(""), len(held), "")
        if job.kind and job.kind in caps:
            self._compare(claim, job, caps[job.kind], self.world.held_kinds[job.kind], job.kind)

    def _compare(self, claim: Claim, job: Job, cap: int | None, held: int, kind: str) -> None:
        if cap is None or claim.end is not None or held + (job.id not in self.world.held) <= cap:
            return
        surely = [
            one
            for one in self.world.held.values()
            if one.job != job.id and not self.world.may_have_ended(one)
            if not kind or self.world.jobs[one.job].kind == kind
        ]
        if len(surely) + 1 > cap:
            of = f"of kind {kind}" if kind else "of all kinds"
            story = (
                f"{claim.node} claimed job {job.id} while {len(surely)} others {of} were in hand; "
                f"{cap} may be"
            )
            lines = [line for one in surely[: cap + 1] for line in one.op.lines]
            self.accuse(job.id, (*lines, *claim.op.lines), story)


@dataclass(eq=False)
class CapsSeen(Invariant, name="S11", needs={"events"}, wants=("caps",)):
    """Events of different jobs may be a little out of order: who is in hand for so long counts."""

    _fresh: deque[tuple[float, int, int]] = noted(deque)
    _settled: dict[int, tuple[str, int]] = noted(dict)
    _kinds: Counter[str] = noted(Counter)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        if not seen.id:
            return
        at = moment(record["at"])
        while self._fresh and self._fresh[0][0] + self.world.event_slack <= at:
            self._settle(*self._fresh.popleft(), now_line=line)
        if seen.is_claim(record):
            self._fresh.append((at, seen.id, line))
        elif seen.in_hand and record["type"] not in {"job.progress", "job.phase_completed"}:
            self._leave(seen)

    def _leave(self, seen: Seen) -> None:
        if self._settled.pop(seen.id, None) is not None:
            self._kinds[seen.kind] -= 1

    def _settle(self, at: float, job_id: int, line: int, *, now_line: int) -> None:
        seen = self.world.seen[job_id]
        if not seen.in_hand or seen.claim_line != line:
            return
        self.cases += 1
        self._settled[job_id] = (seen.kind, line)
        self._kinds[seen.kind] += 1
        caps: dict[str, int] = self.world.header["caps"]
        for kind, count in (("", len(self._settled)), (seen.kind, self._kinds[seen.kind])):
            cap = caps.get(kind)
            if cap is not None and count > cap:
                story = f"{count} jobs {f'of kind {kind} ' if kind else ''}in hand; {cap} may be"
                lines = [one for _, one in list(self._settled.values())[: cap + 1]]
                self.accuse(job_id, (*lines, line, now_line), story)
