"""S13 and S14: no job before it is due, none to who drains, none while the queue is paused."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.checker.facts import Claim, Job, Op, Point, Record, moment
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import Seen, data_of


class NotBeforeDue(Invariant, name="S13", needs={"claims", "clients"}):
    def claimed(self, claim: Claim, job: Job) -> None:
        if job.due is None or job.unsure:
            return
        self.cases += 1
        due = job.due - (self.world.forward - job.due_forward) - self.world.slack
        if claim.op.hi.t < due:
            early = due - claim.op.hi.t
            story = f"{claim.node} claimed job {job.id} {early:.3f} s before it was due"
            self.accuse(job.id, (job.due_line, *claim.op.lines), story)


class NotBeforeDueSeen(Invariant, name="S13", needs={"events"}):
    def event(self, line: int, record: Record, seen: Seen) -> None:
        if seen.due is None or not seen.is_claim(record) or self.world.stepped:
            return
        self.cases += 1
        early = seen.due - moment(record["at"]) - self.world.slack
        if early > 0:
            story = f"job {seen.id} was claimed {early:.3f} s before it was due"
            self.accuse(seen.id, (seen.due_line, line), story)


@dataclass(eq=False)
class DelayedSeen(Invariant, name="S13", needs={"clients", "events"}):
    """A delay counts from somewhere within the request; the event may be told at its very end."""

    _controlled: set[int] = noted(set)

    def asked(self, op: Op) -> None:
        if op.name in {"pause", "resume"}:
            self._controlled.add(op.call["job"])

    def event(self, line: int, record: Record, seen: Seen) -> None:
        if not seen.is_claim(record) or seen.attempt or self.world.stepped:
            return
        job = self.world.jobs.get(seen.id)
        delay = job.made.call.get("delay_seconds") if job and job.made else None
        if job is None or job.made is None or not delay or seen.id in self._controlled:
            return
        self.cases += 1
        within = job.made.hi.t - job.made.lo.t
        early = seen.made_at - within + delay - moment(record["at"]) - self.world.slack
        if early > 0 and not job.maybe_lost:
            story = f"job {seen.id} was claimed {early:.3f} s before it was due"
            self.accuse(seen.id, (*job.made.lines, line), story)


@dataclass(eq=False)
class StillWhileDraining(Invariant, name="S14", needs={"claims", "processes"}):
    _draining: dict[str, tuple[Point, int]] = noted(dict)

    def process(self, line: int, record: Record) -> None:
        if record["what"] == "draining":
            self._draining[record["node"]] = (self.world.now, line)
        elif record["what"] == "started":
            self._draining.pop(record["node"], None)

    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += 1
        since = self._draining.get(claim.node)
        if since is not None and claim.op.asked.seq > since[0].seq:
            story = f"{claim.node} drained, and asked for work and got job {job.id}"
            self.accuse(job.id, (since[1], *claim.op.lines), story)


@dataclass(eq=False)
class StillWhilePaused(Invariant, name="S14", needs={"claims", "clients"}):
    _paused: Op | None = field(default=None, init=False)
    _unsure: set[int | str] = noted(set)  # that may be carried out at any time
    _resumable: int = field(default=-1, init=False)

    def asked(self, op: Op) -> None:
        if op.name == "resume_queue":
            self._paused, self._resumable = None, op.asked.seq
            self._unsure.add(op.id)

    def answered(self, op: Op, status: str) -> None:
        if op.name == "resume_queue":
            self._unsure.discard(op.id)
            self._resumable = self.world.now.seq
        if op.name != "pause_queue" or status != "ok" or self._unsure:
            return
        if self._resumable < op.asked.seq:
            self._paused = op

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover":
            self._paused = None

    def claimed(self, claim: Claim, job: Job) -> None:
        self.cases += 1
        paused = self._paused
        if paused is not None and claim.op.asked.seq > paused.hi.seq:
            story = f"{claim.node} claimed job {job.id} while the queue was paused"
            self.accuse(job.id, (*paused.lines, *claim.op.lines), story)


@dataclass(eq=False)
class StillSeen(Invariant, name="S14", needs={"events"}):
    """A node that is started again under its name says so a moment after its first claims, or
    never: then nobody knows which of the two has claimed. One that says that it has stopped has
    not been killed, so what was claimed until then was claimed by it.
    """

    _draining: dict[str, tuple[float, int]] = noted(dict)
    _suspected: dict[str, list[tuple[int, int, int]]] = noted(dict)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        node = str(data_of(record).get("node", ""))
        if record["type"] == "node.draining":
            self._suspected.pop(node, None)
            self._draining[node] = (moment(record["at"]), line)
        elif record["type"] == "node.started":
            self._suspected.pop(node, None)
            self._draining.pop(node, None)
        elif record["type"] == "node.stopped":
            self._tell(node)
            self._draining.pop(node, None)
        elif seen.is_claim(record):
            self.cases += 1
            since = self._draining.get(node)
            late = since and moment(record["at"]) > since[0] + self.world.event_slack
            if since and late and not self._was_asked(record, seen):
                self._suspected.setdefault(node, []).append((seen.id, since[1], line))

    def _was_asked(self, record: Record, seen: Seen) -> bool:
        """Whether it is known when it was asked for, and judged by that: a claim may come late."""
        job = self.world.jobs.get(seen.id)
        known = job is not None and job.claim_of(data_of(record).get("attempt", 0)) is not None
        return known and "processes" in self.world.header["records"]

    def close(self) -> None:
        for node in sorted(self._suspected):
            self._tell(node)

    def _tell(self, node: str) -> None:
        for job_id, since, line in self._suspected.pop(node, []):
            self.accuse(job_id, (since, line), f"{node} drained, and claimed job {job_id}")
