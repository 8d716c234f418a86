"""S15: who cancels a job is heard, and nothing makes the job forget it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import ENDED, Claim, End, Job, Op, Record
from tests.checker.invariant import Invariant, noted
from tests.checker.world import CALM_FAULTS


@dataclass(eq=False)
class Asked(Invariant, name="S15", needs={"claims", "clients"}):
    _ever_asked: set[int] = noted(set)

    def asked(self, op: Op) -> None:
        if op.name in {"cancel", "pause"}:
            self._ever_asked.add(op.call["job"])

    def controlled(self, op: Op, job: Job) -> None:
        self.cases += op.name in {"cancel", "pause"}

    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        """A settlement is turned into another only where somebody has asked for that."""
        wanted = end.op.call.get("state", end.state)
        if end.how != "settle" or wanted == end.state:
            return
        self.cases += 1
        may = wanted in {"queued", "paused"} and end.state in {"canceled", "paused"}
        if not may or job.id not in self._ever_asked:
            story = f"{end.op.node} settled job {job.id} as {wanted}; it became {end.state}"
            self.accuse(job.id, end.op.lines, story)

    def claimed(self, claim: Claim, job: Job) -> None:
        last = job.last_end
        if last is not None and last.name in {"cancel", "clear"}:
            if last.hi.seq < claim.op.lo.seq and job.resumed.seq < last.lo.seq and not job.unsure:
                story = f"{claim.node} claimed job {job.id}, which was canceled"
                self.accuse(job.id, (*last.lines, *claim.op.lines), story)
        elif job.request is not None and job.request[1].hi.seq < claim.op.lo.seq:
            what, op = job.request
            story = (
                f"{claim.node} claimed job {job.id} again, though its holder had been asked to "
                f"{what} it"
            )
            self.accuse(job.id, (*op.lines, *claim.op.lines), story)


@dataclass(eq=False)
class AskedOfHandlers(Invariant, name="S15", needs={"clients", "handlers"}):
    _canceled: dict[int, Op] = noted(dict)
    _running: dict[int, int] = noted(dict)  # line of the begin, by job
    _places: dict[int, str] = noted(dict)  # who runs it
    _unheard: dict[int, Op] = noted(dict)
    _resumed: set[int] = noted(set)
    _begun: dict[int, int] = noted(dict)  # the latest attempt, by job
    _stopping: dict[int, tuple[Op, int]] = noted(dict)  # and which attempt had begun by then

    def asked(self, op: Op) -> None:
        if op.name == "resume":
            self._stopping.pop(op.call["job"], None)
            self._resumed.add(op.call["job"])

    def answered(self, op: Op, status: str) -> None:
        if op.name != "cancel" or status != "ok":
            return
        self.cases += 1
        if op.result.get("asked"):
            job_id = op.call["job"]
            if job_id not in self._resumed:
                self._stopping[job_id] = (op, self._begun.get(job_id, 0))
            if op.call["job"] in self._running:
                self._unheard[op.call["job"]] = op
        elif op.result.get("state") == "canceled":
            self._canceled[op.call["job"]] = op

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover" and record.get("lost_since") is not None:
            self._canceled.clear()
            self._stopping.clear()
        if record["what"] not in CALM_FAULTS:
            self._unheard.clear()  # the bound is for calm ground
        if record["what"] == "kill":  # its handlers hear nothing, and say nothing
            dead = f"node:{record.get('node')}"
            for job_id in [one for one, who in self._places.items() if who == dead]:
                self._running.pop(job_id, None)

    def begin(self, line: int, record: Record) -> None:
        self._running[record["job"]] = line
        self._places[record["job"]] = record["who"]
        self._judge_forgotten(line, record)
        self._begun[record["job"]] = record["attempt"]
        op = self._canceled.get(record["job"])
        if op is not None and not record.get("phase") and not self._lost_early(record, op):
            story = f"job {record['job']} was canceled before it began, and began"
            self.accuse(record["job"], (*op.lines, line), story)

    def _lost_early(self, record: Record, cancel: Op) -> bool:
        """Claimed before that; a clock that nobody but the store goes by has ended its lease."""
        claim = self._claimed_before(record, cancel)
        return claim is not None and self.world.forward > claim.forward

    def _claimed_before(self, record: Record, cancel: Op) -> Claim | None:
        """Its claim, if the store may have granted it before the cancel."""
        job = self.world.jobs.get(record["job"])
        claim = None if job is None else job.claims.get(record.get("token", ""))
        return None if claim is None or claim.op.lo.seq > cancel.hi.seq else claim

    def _judge_forgotten(self, line: int, record: Record) -> None:
        """What was in hand when it was asked for may begin: where no claims are known, the attempt
        after the one that had begun.
        """
        op, begun = self._stopping.get(record["job"], (None, 0))
        if op is None or not begun or self._claimed_before(record, op) is not None:
            return
        if record["attempt"] > begun + 1:
            story = (
                f"attempt {record['attempt']} of job {record['job']} began, long after it was to "
                "be canceled"
            )
            self.accuse(record["job"], (*op.lines, line), story)

    def told(self, line: int, record: Record) -> None:
        self._heard(line, record)
        self._running.pop(record["job"], None)  # it stops, and need not be told again

    def stopped(self, line: int, record: Record) -> None:
        self._heard(line, record)
        self._running.pop(record["job"], None)

    def close(self) -> None:
        for job_id, op in self._unheard.items():
            self._judge(job_id, op, self.world.now.t, 0)

    def _heard(self, line: int, record: Record) -> None:
        op = self._unheard.pop(record["job"], None)
        if op is not None:
            self._judge(record["job"], op, self.world.now.t, line)

    def _judge(self, job_id: int, op: Op, t: float, line: int) -> None:
        bound = self.world.bound("tell")
        if bound is None or self.world.calm_since is None or t <= op.hi.t + bound:
            return
        story = f"the handler of job {job_id} heard of the cancel {t - op.hi.t:.3f} s later"
        self.accuse(job_id, (*op.lines, self._running.get(job_id, 0), line), story)


@dataclass(eq=False)
class AskedInTheEnd(Invariant, name="S15", needs={"clients", "jobs"}):
    _asked: dict[int, Op] = noted(dict)

    def asked(self, op: Op) -> None:
        if op.name == "resume":
            self._asked.pop(op.call["job"], None)

    def answered(self, op: Op, status: str) -> None:
        if op.name == "cancel" and status == "ok":
            self._asked[op.call["job"]] = op

    def final_job(self, line: int, record: Record) -> None:
        op = self._asked.get(record["id"])
        job = self.world.job(record["id"])
        if op is None or job.maybe_lost or job.unsure:
            return
        self.cases += 1
        state = record["state"]
        if state in {"pending", "queued", "paused"}:
            story = f"job {record['id']} was to be canceled; in the end it is {state}"
            self.accuse(record["id"], (*op.lines, line), story)
        elif not op.result.get("asked") and state in ENDED and state != "canceled":
            story = f"job {record['id']} was canceled; in the end it is {state}"
            self.accuse(record["id"], (*op.lines, line), story)
