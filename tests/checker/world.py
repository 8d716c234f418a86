"""What is known at a moment of the history; every invariant reads it, only the court writes it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.checker.facts import NEVER, Claim, End, Job, Op, Point, Record
from tests.checker.seen import Seen

CALM_FAULTS = frozenset({"heal", "poison"})  # after these the ground is as it should be


class World:
    def __init__(self, header: Record) -> None:
        self.header = header
        self.commits = bool(header.get("commits"))
        self.slack: float = header.get("slack_seconds", 0.001)
        self.look: float = header.get("look_seconds", 0.0)
        self.event_slack: float = header.get("event_slack_seconds", 2.0)
        self.statement: float = header.get("statement_seconds", 0.0)
        self.now: Point = NEVER
        self.jobs: dict[int, Job] = {}
        self.seen: dict[int, Seen] = {}
        self.tokens: dict[str, Op] = {}  # the first claim that was asked for with it
        self.held: dict[int, Claim] = {}  # surely in hand now, by job
        self.held_kinds: Counter[str] = Counter()
        self.held_targets: dict[str, set[int]] = {}
        self.targets: dict[str, set[int]] = {}  # jobs that may halt them
        self.early_ends: dict[tuple[int, int], End] = {}  # of claims that nobody has heard of yet
        self.unsure_claims: set[str] = set()  # tokens of claims that may have been carried out
        self.unsure_reaps: set[int | str] = set()
        self.unsure_takeovers: set[int | str] = set()
        self.expired_at: Point = NEVER  # all leases ran out
        self.forward = 0.0  # seconds that the store's clock was put forward so far
        self._backs: list[tuple[float, float]] = []  # and back: when, and seconds
        self.stepped = False  # the store's clock was put forward or back
        self.calm_since: float | None = 0.0  # None = there are faults
        self.away_since: dict[str, Point] = {}  # nodes that are frozen
        self.freezes: dict[str, list[tuple[float, float]]] = {}
        self.failovers = 0
        self.starts: Counter[str] = Counter()

    def bound(self, name: str) -> float | None:
        bounds: dict[str, Any] = self.header.get("bounds") or {}
        return bounds.get(name)

    def job(self, job_id: int) -> Job:
        job = self.jobs.get(job_id)
        if job is None:
            job = self.jobs[job_id] = Job(job_id)
        return job

    def put_back_since(self, t: float) -> float:
        """A lease that nobody has renewed since then stands so many seconds longer."""
        return sum(seconds for at, seconds in self._backs if at >= t)

    def expires(self, claim: Claim) -> float:
        """No earlier than this its lease can have run out, on the recorder's clock."""
        if claim.op.lo.seq <= self.expired_at.seq or self.unsure_takeovers:
            return float("-inf")
        stepped = self.forward - claim.forward
        return claim.leased_from + claim.lease - stepped - self.slack

    def may_have_ended(self, claim: Claim) -> bool:
        """Whether the attempt may be over, though nobody has said so."""
        if claim.maybe_ends or claim.undone:
            return True
        return bool(self.unsure_reaps) and self.now.t >= self.expires(claim)

    def hold(self, claim: Claim) -> None:
        job = self.jobs[claim.job]
        if job.claim is not claim or claim.end or claim.maybe_ends or claim.undone:
            return
        if claim.job in self.held:
            return
        self.held[claim.job] = claim
        self.held_kinds[job.kind] += 1
        if job.target is not None:
            self.held_targets.setdefault(job.target, set()).add(claim.job)

    def unhold(self, claim: Claim) -> None:
        if self.held.get(claim.job) is not claim:
            return
        del self.held[claim.job]
        job = self.jobs[claim.job]
        self.held_kinds[job.kind] -= 1
        if job.target is not None:
            mates = self.held_targets[job.target]
            mates.discard(claim.job)
            if not mates:
                del self.held_targets[job.target]

    def take_over(self, op: Op) -> None:
        """All leases of now run out."""
        self.expired_at = op.hi

    def may_halt(self, job: Job) -> None:
        if job.target is not None:
            self.targets.setdefault(job.target, set()).add(job.id)

    def rename(self, job: Job, made: Op) -> None:
        """It is known now what job that is; what was claimed before counts under its name."""
        held = self.held.get(job.id)
        if held is not None:
            self.unhold(held)
        job.made = made
        if held is not None:
            self.hold(held)

    def straddles(self, node: str, deadline: float, t: float) -> bool:
        """Whether the node was frozen somewhere from before the deadline until shortly before, or
        thawed so late that it had not looked again.
        """
        frozen = self.away_since.get(node)
        if frozen is not None and frozen.t <= deadline:
            return True
        late = deadline - self.look
        return any(
            start <= deadline and late <= end <= t for start, end in self.freezes.get(node, [])
        )

    def has_not_looked(self, node: str, deadline: float, t: float, look: float) -> bool:
        """Whether the node thawed so lately that its next look at its leases may be to come; it was
        frozen from before the deadline. While it is frozen once more it does not look either.
        """
        return any(
            start <= deadline and end <= t <= end + look + self.frozen_seconds(node, end, t)
            for start, end in self.freezes.get(node, [])
        )

    def frozen_seconds(self, node: str, since: float, until: float) -> float:
        """For how long of that time the node was frozen."""
        spans = list(self.freezes.get(node, []))
        if node in self.away_since:
            spans.append((self.away_since[node].t, self.now.t))
        return sum(max(0.0, min(end, until) - max(start, since)) for start, end in spans)

    def befall(self, record: Record) -> None:
        what, node = record["what"], str(record.get("node", ""))
        if what == "heal":
            self.calm_since = self.now.t
        elif what not in CALM_FAULTS:
            self.calm_since = None
        if what == "clock" and record.get("who") == "store":
            self.stepped = True
            self.forward += max(0.0, record.get("seconds", 0.0))
            self._backs.append((self.now.t, max(0.0, -record.get("seconds", 0.0))))
        elif what == "freeze":
            self.away_since[node] = self.now
        elif what in {"thaw", "kill"} and node in self.away_since:
            start = self.away_since.pop(node)
            self.freezes.setdefault(node, []).append((start.t, self.now.t))
        elif what == "failover":
            self.fail_over(record.get("lost_since"))

    def fail_over(self, lost_since: int | None) -> None:
        """What was committed after that may be gone. None = nothing is."""
        if lost_since is None:
            return
        self.failovers += 1
        for job in self.jobs.values():
            if job.touched >= lost_since:
                for claim in job.claims.values():
                    self.unhold(claim)
                if job.target is not None:  # its id may be that of another job from now on
                    self.targets.get(job.target, set()).discard(job.id)
                job.forget()
                job.maybe_lost = True
