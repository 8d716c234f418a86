"""S18 and S19: each end is told once, by one message, which one courier at a time has in hand;
nothing is deleted too early.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.checker.facts import ENDED, Job, Op, Record, moment
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import Seen

ENDS = frozenset({"job.succeeded", "job.failed", "job.canceled"})
TOLD = frozenset({"job.webhook_delivered", "job.webhook_failed"})
ANSWER_OK = range(200, 300)


@dataclass(eq=False)
class OneMessage(Invariant, name="S18", needs={"jobs", "messages"}):
    _messages: dict[int, Counter[str]] = noted(dict)
    _ids: dict[str, int] = noted(dict)
    _ends: dict[int, Counter[str]] = noted(dict)
    _resumed: set[int] = noted(set)
    _wanted: set[int] = noted(set)
    _final: dict[int, tuple[int, Record]] = noted(dict)

    def asked(self, op: Op) -> None:
        if op.name == "resume":
            self._resumed.add(op.call["job"])

    def made(self, op: Op, job: Job) -> None:
        if op.result.get("new") is False:
            return
        self._wanted.discard(job.id)  # of one that was lost, whose id this is now
        if op.call.get("webhook"):
            self._wanted.add(job.id)

    def fired(self, op: Op) -> None:
        self._wanted.discard(op.result.get("job", 0))

    def event(self, line: int, record: Record, seen: Seen) -> None:
        if record["type"] in ENDS:
            self._ends.setdefault(seen.id, Counter())[record["type"]] += 1

    def final_job(self, line: int, record: Record) -> None:
        self._final[record["id"]] = (line, record)

    def final_message(self, line: int, record: Record) -> None:
        first = self._ids.setdefault(record["webhook_id"], line)
        if first != line:
            story = f"two messages have the id {record['webhook_id']}"
            self.accuse(record["job_id"], (first, line), story)
        if record["type"] in ENDS:
            of_job = self._messages.setdefault(record["job_id"], Counter())
            of_job[record["type"]] += 1

    def close(self) -> None:
        for job_id, (line, record) in self._final.items():
            wanted = self.world.header.get("webhooks") or record.get("webhook")
            was_wanted = job_id in self._wanted and not self.world.job(job_id).maybe_lost
            if wanted or was_wanted:
                self.cases += 1
                self._judge(job_id, line, record["state"])

    def _judge(self, job_id: int, line: int, state: str) -> None:
        messages = self._messages.get(job_id, Counter())
        if "events" in self.world.header["records"]:
            ends = self._ends.get(job_id, Counter())
        elif job_id in self._resumed:
            return  # how often it ended nobody has told
        else:
            ends = Counter([f"job.{state}"] if state in ENDED else [])
        if messages != ends:
            story = f"job {job_id} ended {told(ends)}; its messages are {told(messages)}"
            self.accuse(job_id, (line,), story)


def told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} x {type_}" for type_, count in sorted(counts.items())) or "none"


@dataclass(eq=False)
class Delivered(Invariant, name="S18", needs={"deliveries", "messages"}):
    _taken: dict[str, tuple[int, Record]] = noted(dict)
    _types: dict[str, tuple[int, int, str]] = noted(dict)
    _known: dict[str, tuple[int, str]] = noted(dict)

    def delivery(self, line: int, record: Record) -> None:
        self.cases += 1
        given = (line, record["job"], record["type"])
        first = self._types.setdefault(record["message"], given)
        if first[1:] != given[1:]:
            story = f"message {record['message']} was told as two things"
            self.accuse(record["job"], (first[0], line), story)
        if record.get("status") in ANSWER_OK:
            self._taken.setdefault(record["message"], (line, record))

    def final_message(self, line: int, record: Record) -> None:
        message = record["webhook_id"]
        self._known[message] = (record["job_id"], record["type"])
        if record["state"] == "delivered" and message not in self._taken:
            story = (
                f"message {message} of job {record['job_id']} counts as delivered; nobody got it"
            )
            self.accuse(record["job_id"], (line,), story)

    def close(self) -> None:
        told = {"events", "retention"} & set(self.world.header["records"])
        may_be_gone = bool(self.world.header.get("retention")) and not told
        for message, (line, job, type_) in self._types.items():
            known = self._known.get(message)
            if known is None and not may_be_gone and not self.world.failovers:
                if self._is_deleted(job):
                    continue
                self.accuse(job, (line,), f"message {message} was told, and is not in the store")
            elif known is not None and known != (job, type_):
                story = f"message {message} was told as {type_} of job {job}; it is {known}"
                self.accuse(job, (line,), story)

    def _is_deleted(self, job_id: int) -> bool:
        job, seen = self.world.jobs.get(job_id), self.world.seen.get(job_id)
        return bool((job and job.deleted) or (seen and seen.state == "deleted"))


@dataclass(eq=False)
class OneCourier(Invariant, name="S18", needs={"outbox"}):
    """Where nobody tells of commits, what may have been settled need not be in hand any more."""

    _held: dict[int, tuple[Op, float]] = noted(dict)  # and by how much the clock was ahead then
    _taken: dict[tuple[int, str], Op] = noted(dict)  # by token
    _maybe_settled: set[tuple[int, str]] = noted(set)
    _settled: dict[tuple[int, str], Op] = noted(dict)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover" and record.get("lost_since") is not None:
            self._held.clear()

    def asked(self, op: Op) -> None:
        if op.name == "settle_message" and not self.world.commits:
            self._maybe_settled.add((op.call["message"], op.call["token"]))

    def message(self, op: Op) -> None:
        if op.name == "take_messages":
            for message in op.result["messages"]:
                self._take(message, op)
        elif self.world.commits:
            self._settle(op.call["message"], op)
        else:
            self._settle_heard(op.call["message"], op)

    def _take(self, message: int, op: Op) -> None:
        self.cases += 1
        holder, forward = self._held.get(message, (None, 0.0))
        self._held[message] = (op, self.world.forward)
        self._taken[message, op.call["token"]] = op
        if holder is None or (message, holder.call["token"]) in self._maybe_settled:
            return
        stepped = self.world.forward - forward + self.world.slack
        early = holder.lo.t + holder.call["seconds"] - stepped - op.hi.t
        # Both were under way at once, and this one was the first, and late when the other came.
        other_way = op.lo.seq < holder.hi.seq and op.lo.t + op.call["seconds"] <= holder.hi.t
        if early > 0 and not other_way:
            story = f"{op.node} took message {message} {early:.3f} s before {holder.node} was late"
            self.accuse(None, (*holder.lines, *op.lines), story)

    def _settle(self, message: int, op: Op) -> None:
        self.cases += 1
        holder, _ = self._held.pop(message, (None, 0.0))
        if holder is not None and holder.call["token"] != op.call["token"]:
            story = f"{op.node} settled message {message}, which {holder.node} has taken since"
            self.accuse(None, (*holder.lines, *op.lines), story)
        elif holder is None and not self.world.failovers:
            story = f"{op.node} settled message {message}, which nobody has in hand"
            self.accuse(None, op.lines, story)

    def _settle_heard(self, message: int, op: Op) -> None:
        self.cases += 1
        key = message, op.call["token"]
        first = self._settled.setdefault(key, op)
        holder, own = self._held.get(message, (None, 0.0))[0], self._taken.get(key)
        if first is not op:
            story = f"{op.node} settled message {message} twice under one token"
            self.accuse(None, (*first.lines, *op.lines), story)
        elif holder and own and own.hi.seq < holder.lo.seq <= holder.hi.seq < op.lo.seq:
            story = f"{op.node} settled message {message}, which {holder.node} has taken since"
            self.accuse(None, (*holder.lines, *op.lines), story)


@dataclass(eq=False)
class Kept(Invariant, name="S19", needs={"retention", "claims", "clients"}, wants=("retention",)):
    # By job and attempt: when its handler began, and how long it took.
    _began: dict[tuple[int, int], float] = noted(dict)
    _took: dict[tuple[int, int], float] = noted(dict)

    def begin(self, line: int, record: Record) -> None:
        self._began.setdefault((record["job"], record["attempt"]), self.world.now.t)

    def stopped(self, line: int, record: Record) -> None:
        key = record["job"], record["attempt"]
        self._took[key] = self.world.now.t - self._began.get(key, self.world.now.t)

    def _ended(self, last: Op, job: Job) -> float:
        """A job ends when its work does, which may be long before that is written. How long after
        its claim it began, its node knows no better than answers take.
        """
        if last.name != "settle" or job.claim is None:
            return last.lo.t
        key = (job.id, last.call.get("attempt", job.claim.attempt))
        return job.claim.op.lo.t + self._took.get(key, 0.0)

    def deleted(self, op: Op, job: Job) -> None:
        self.cases += 1
        keep = self.world.header["retention"].get(job.last_state, 0)
        last = job.last_end
        if job.maybe_lost:
            return
        if last is None:
            if self._surely_lives(job):
                self.accuse(job.id, op.lines, f"job {job.id} was deleted and had not ended")
            return
        age = op.hi.t - self._ended(last, job) + self.world.forward + self.world.slack
        if not keep or age < keep:
            story = f"job {job.id} ({job.last_state}) was deleted {age:.3f} s after its end"
            self.accuse(job.id, (*last.lines, *op.lines), story)
        elif job.last_state == "failed" and job.target is not None and not job.cleared:
            story = f"job {job.id}, which halts target {job.target!r}, was deleted"
            self.accuse(job.id, (*last.lines, *op.lines), story)

    def _surely_lives(self, job: Job) -> bool:
        if self.world.commits:
            return True
        return job.claim is not None and not self.world.may_have_ended(job.claim)


@dataclass(eq=False)
class ToldBeforeGone(Invariant, name="S19", needs={"events", "clients"}, wants=("retention",)):
    """By events: whoever was to be told of the end of a job has been, or never will be."""

    _left: Counter[int] = noted(Counter)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        job = self.world.jobs.get(seen.id)
        if job is None or job.made is None or not job.made.call.get("webhook"):
            return
        if record["type"] in ENDS:
            self.cases += 1
            self._left[seen.id] += 1
        elif record["type"] in TOLD:
            self._left[seen.id] -= 1
        elif record["type"] == "job.deleted" and self._left[seen.id] > 0 and not job.maybe_lost:
            story = f"job {seen.id} was deleted before its end was told"
            self.accuse(seen.id, (*job.made.lines, seen.line, line), story)


@dataclass(eq=False)
class KeptSeen(Invariant, name="S19", needs={"events"}, wants=("retention",)):
    _gone: dict[int, int] = noted(dict)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        if record["type"] != "job.deleted":
            return
        self.cases += 1
        self._gone[seen.id] = line
        keep = self.world.header["retention"].get(seen.state, 0)
        # An end counts from when the work ended; while the store was away nobody could tell.
        since = min(seen.since, seen.claimed_at or seen.since)
        age = moment(record["at"]) - since + self.world.slack
        if seen.state not in ENDED:
            self.accuse(seen.id, (seen.line, line), f"job {seen.id} was deleted: {seen.state}")
        elif not keep or (age < keep and not self.world.stepped):
            story = f"job {seen.id} ({seen.state}) was deleted {age:.3f} s after its end"
            self.accuse(seen.id, (seen.line, line), story)
        elif seen.halts:
            story = f"job {seen.id}, which halts target {seen.target!r}, was deleted"
            self.accuse(seen.id, (seen.line, line), story)

    def final_message(self, line: int, record: Record) -> None:
        gone = self._gone.get(record["job_id"])
        if gone and record["state"] == "waiting" and record["type"] in ENDS:
            story = f"job {record['job_id']} was deleted; its message was not yet delivered"
            self.accuse(record["job_id"], (gone, line), story)
