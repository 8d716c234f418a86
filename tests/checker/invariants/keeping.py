"""S1 to S3: what was asked for is there, what is there was asked for, and once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.checker.facts import ENDED, Job, Op, Record
from tests.checker.history import digest_of
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import Seen

ENDING = frozenset({"settle", "cancel", "clear", "delete"})


@dataclass(eq=False)
class NoLoss(Invariant, name="S1", needs={"clients", "jobs"}):
    _acked: dict[int, Op] = noted(dict)
    _there: set[int] = noted(set)
    _unsure: set[int | str] = noted(set)  # deletions that may have been carried out

    def asked(self, op: Op) -> None:
        if op.name == "delete" and not self.world.commits:
            self._unsure.add(op.id)

    def made(self, op: Op, job: Job) -> None:
        if job.deleted is None:
            self._acked[job.id] = op

    def answered(self, op: Op, status: str) -> None:
        self._unsure.discard(op.id)
        if status != "ok" or op.name == "read_back":
            return
        if self.world.commits and not op.applied:
            lines = (op.line, op.done_line)
            story = f"{op.who} was told that its {op.name} was carried out; the store never did it"
            self.accuse(op.call.get("job"), lines, story)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        if record["type"] == "job.deleted":
            self._there.add(seen.id)

    def deleted(self, op: Op, job: Job) -> None:
        self._there.add(job.id)

    def final_job(self, line: int, record: Record) -> None:
        self._there.add(record["id"])

    def close(self) -> None:
        self.cases = len(self._acked)
        records = set(self.world.header["records"])
        may_delete = self.world.header.get("retention") and "retention" not in records
        if "events" not in records and (may_delete or self._unsure):
            return  # what is not there may have been deleted, and nobody would tell
        for job_id, op in self._acked.items():
            if job_id not in self._there and not self.world.jobs[job_id].maybe_lost:
                story = f"{op.who} was told of job {job_id}; in the end it is not in the store"
                self.accuse(job_id, op.lines, story)


@dataclass(eq=False)
class NoInvention(Invariant, name="S2", needs={"clients", "jobs"}):
    """Jobs of schedules were asked for by nobody: there may be as many more as were fired."""

    _asked: Counter[str | None] = noted(Counter)  # by digest; None = the payload was not told
    _digests: dict[int, tuple[str | None, Op]] = noted(dict)
    _known: Counter[str | None] = noted(Counter)  # of jobs that somebody was told of
    _made: Counter[str | None] = noted(Counter)  # of the others
    _scheduled: set[int] = noted(set)
    _strangers: list[tuple[int, int]] = noted(list)
    _unsure_fires: set[int | str] = noted(set)
    _fired: int = field(default=0, init=False)

    def asked(self, op: Op) -> None:
        if op.name == "enqueue":
            self._asked[op.call["digest"]] += 1
        elif op.name == "fire" and not self.world.commits:
            self._unsure_fires.add(op.id)

    def answered(self, op: Op, status: str) -> None:
        if op.name == "fire":
            self._unsure_fires.discard(op.id)

    def made(self, op: Op, job: Job) -> None:
        if op.result.get("new") is not False:
            digest = op.call["digest"]
            self._digests[job.id] = (digest, op)
            self._known[digest] += 1

    def fired(self, op: Op) -> None:
        if op.result.get("job") is not None:
            self._scheduled.add(op.result["job"])
            self._digests.pop(op.result["job"], None)

    def begin(self, line: int, record: Record) -> None:
        self._compare(line, record["job"], record.get("digest"), "its handler was given")

    def final_job(self, line: int, record: Record) -> None:
        self.cases += 1
        digest = digest_of(record)
        if self._is_known(record["id"], digest):
            self._compare(line, record["id"], digest, "the store has")
        elif record["id"] not in self._scheduled:
            self._made[digest] += 1
            unknown = self._asked[digest] - self._known[digest]
            if unknown < self._made[digest] and not self._asked[None]:
                self._strangers.append((record["id"], line))

    def final_schedule(self, line: int, record: Record) -> None:
        self._fired += record.get("fired") or 0

    def close(self) -> None:
        records = self.world.header["records"]
        if "schedules" in records:
            allowed = len(self._unsure_fires)
        elif self.world.header.get("schedules") and "schedule_rows" not in records:
            return  # nobody tells how many jobs they made
        else:
            allowed = self._fired
        if len(self._strangers) > allowed:
            for job_id, line in self._strangers:
                story = f"job {job_id} is in the store, and nobody has asked for it"
                self.accuse(job_id, (line,), story)

    def _is_known(self, job_id: int, digest: str | None) -> bool:
        """The id of a job that was lost in a failover may have been given to another one."""
        if job_id not in self._digests:
            return False
        return not self.world.job(job_id).maybe_lost or self._digests[job_id][0] == digest

    def _compare(self, line: int, job_id: int, digest: str | None, what: str) -> None:
        asked, op = self._digests.get(job_id, (None, None))
        if self.world.job(job_id).maybe_lost:
            return
        if op is not None and asked and digest and asked != digest:
            story = f"job {job_id} was made with another payload than {what}"
            self.accuse(job_id, (*op.lines, line), story)


@dataclass(eq=False)
class OnceByKey(Invariant, name="S3", needs={"clients"}):
    _holders: dict[str, Op] = noted(dict)
    _over: set[int] = noted(set)  # jobs that somebody may have ended
    _resumed: set[int] = noted(set)
    _unfinished: dict[str, tuple[int, int]] = noted(dict)

    def __post_init__(self) -> None:
        self._sees_ends = "claims" in self.world.header["records"]

    def asked(self, op: Op) -> None:
        if op.name == "resume":
            self._resumed.add(op.call["job"])
        if op.name in ENDING and "job" in op.call and not self.world.commits:
            self._over.add(op.call["job"])

    def made(self, op: Op, job: Job) -> None:
        key = op.call.get("dedup_key")
        if key is None:
            return
        self.cases += 1
        holder = self._holders.get(key)
        is_new = op.result.get("new") is not False
        if holder is not None and is_new and self._still_held(holder, op):
            story = (
                f"{op.who} asked for key {key!r} and got a new job {job.id}, while job "
                f"{holder.result['job']} had the key"
            )
            self.accuse(job.id, (*holder.lines, *op.lines), story)
        if is_new or holder is None:
            self._holders[key] = op

    def final_job(self, line: int, record: Record) -> None:
        key = record.get("dedup_key")
        if key is None or record["state"] in ENDED or record["id"] in self._resumed:
            return
        first = self._unfinished.setdefault(key, (record["id"], line))
        if first[1] != line and not self.world.failovers:
            story = (
                f"jobs {first[0]} and {record['id']} have the key {key!r}, and neither has ended"
            )
            self.accuse(record["id"], (first[1], line), story)

    def _still_held(self, holder: Op, later: Op) -> bool:
        """Surely, and both at once."""
        other = self.world.jobs[holder.result["job"]]
        if other.id == later.result["job"] or other.maybe_lost:
            return False
        scope = holder.call.get("dedup_scope", "until_finished")
        if scope != "until_finished":  # such a key outlives its job
            stepped = self.world.slack + self.world.forward
            return scope == "forever" or later.hi.t + stepped < holder.lo.t + float(scope)
        if other.deleted or not self._sees_ends:
            return False
        if other.last_end is not None or other.id in self._over:
            return False
        return other.claim is None or not self.world.may_have_ended(other.claim)
