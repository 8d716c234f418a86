"""What an operation means once it was carried out: for the invariants, then for the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from tests.checker.facts import ENDED, Claim, End, Job, Op, settled
from tests.checker.world import World

WRITES = frozenset({"renew", "start", "progress", "phase", "settle", "give_back"})
ENDING = frozenset({"settle", "give_back"})
GOES_ON = frozenset({"resume", "release", "clear"})


class Told(Protocol):
    def hooks(self, name: str) -> list[Callable[..., Any]]: ...


class Carrier:
    def __init__(self, world: World, tell: Told) -> None:
        self._world = world
        self._tell = tell
        self._does: dict[str, Callable[[Op], None]] = {
            "enqueue": self._enqueue,
            "claim": self._claim,
            "read_back": self._read_back,
            "reap": self._reap,
            "take_over": world.take_over,
            "delete": self._delete,
            "fire": self._fire,
            **dict.fromkeys(WRITES, self._write),
            **dict.fromkeys(("cancel", "pause", "resume", "release", "clear"), self._control),
            **dict.fromkeys(("take_duty", "renew_duty", "release_duty"), self._duty),
            **dict.fromkeys(("take_messages", "settle_message"), self._message),
        }

    def asked(self, op: Op) -> None:
        """From now on it may be carried out, as far as one can know from outside."""
        world = self._world
        if op.name == "claim":
            world.tokens.setdefault(op.call["token"], op)
        if world.commits:
            return
        if op.name == "claim":
            world.unsure_claims.add(op.call["token"])
        elif op.name == "reap":
            world.unsure_reaps.add(op.id)
        elif op.name == "take_over":
            world.unsure_takeovers.add(op.id)
        elif op.name in ENDING:
            self._may_end(op)
        elif op.name in GOES_ON:
            self._may_go_on(op)
        elif op.name == "cancel":
            world.job(op.call["job"]).unsure_cancels.add(op.id)

    def answered(self, op: Op, status: str) -> None:
        """Its caller knows what came of it."""
        world = self._world
        if op.name == "claim":
            world.unsure_claims.discard(op.call["token"])
            world.tokens.pop(op.call["token"], None)
        elif op.name == "reap":
            world.unsure_reaps.discard(op.id)
        elif op.name == "take_over":
            world.unsure_takeovers.discard(op.id)
        elif op.name in GOES_ON:
            world.job(op.call["job"]).unsure.discard(op.id)
        elif op.name == "cancel":
            world.job(op.call["job"]).unsure_cancels.discard(op.id)
        elif op.name in ENDING:
            self._has_ended_or_not(op)
        if status == "ok" and op.name in {"claim", "read_back", "renew"}:
            self._trust(op)

    def carried_out(self, op: Op) -> None:
        op.applied = True
        does = self._does.get(op.name)
        if does is not None:
            does(op)

    def _enqueue(self, op: Op) -> None:
        job = self._world.job(op.result["job"])
        for hook in self._tell.hooks("made"):
            hook(op, job)
        if op.result.get("new") is False:
            return
        self._world.rename(job, op)
        job.touched = op.hi.seq
        delay = op.call.get("delay_seconds")
        job.plain = not delay and not op.call.get("hold")
        if job.attempt == 0 and op.call.get("hold"):
            job.rest = ("pending", op)
        if job.attempt == 0 and delay:
            job.due, job.due_line, job.due_forward = op.lo.t + delay, op.line, self._world.forward

    def _claim(self, op: Op) -> None:
        for one in op.result.get("jobs") or ():
            self._take(op, op, one["job"], one["attempt"])

    def _read_back(self, op: Op) -> None:
        """What is leased under a token was claimed by the call that brought it."""
        token = op.call["token"]
        first = self._world.tokens.get(token)
        for one in op.result.get("jobs") or ():
            if token in self._world.job(one["job"]).claims:
                continue
            self._take(self._found_out(first or op, op), op, one["job"], one["attempt"])

    def _take(self, op: Op, known_by: Op, job_id: int, attempt: int) -> None:
        world, job = self._world, self._world.job(job_id)
        lease = op.call.get("lease_seconds") or world.header.get("lease_seconds", 0.0)
        token = op.call["token"]
        claim = Claim(
            job=job_id,
            token=token,
            attempt=attempt,
            op=op,
            lease=lease,
            leased_from=op.lo.t,
            trusted_from=op.asked.t,
            lease_line=known_by.done_line,
            forward=world.forward,
        )
        claim.end = world.early_ends.pop((job_id, attempt), None)
        for hook in self._tell.hooks("claimed"):
            hook(claim, job)
        job.claims[token] = claim
        job.used += 1
        job.touched = op.hi.seq
        if job.claim is not None and attempt < job.claim.attempt:
            return
        if job.claim is not None:
            world.unhold(job.claim)
        job.claim, job.attempt, job.rest, job.due = claim, attempt, None, None
        world.hold(claim)

    def _write(self, op: Op) -> None:
        world, job = self._world, self._world.job(op.call["job"])
        token = op.call["token"]
        claim = job.claims.get(token)
        if claim is None and token in world.unsure_claims and not world.commits:
            first = world.tokens[token]
            attempt = op.call.get("attempt", job.attempt + 1)
            self._take(self._found_out(first, op), op, job.id, attempt)
            claim = job.claims[token]
        for hook in self._tell.hooks("wrote"):
            hook(op, job, claim)
        job.touched = op.hi.seq
        if op.name == "renew" and claim is not None:
            claim.lease = op.call["lease_seconds"]
            claim.leased_from = max(claim.leased_from, op.lo.t)
            claim.forward, claim.lease_line = world.forward, op.line
        elif op.name in ENDING:
            self._end(claim, settled(op), job)

    def _found_out(self, first: Op, found: Op) -> Op:
        """A claim of which no reply came: it was carried out by the time that this shows it."""
        return replace(
            first,
            result=found.result,
            done_line=found.done_line,
            lo=first.lo if self._world.commits else first.asked,
            hi=found.hi,
            applied=True,
        )

    def _end(self, claim: Claim | None, end: End, job: Job) -> None:
        world = self._world
        for hook in self._tell.hooks("ended"):
            hook(claim, end, job)
        job.touched = end.op.hi.seq
        if claim is not None:
            claim.end = claim.end or end
            world.unhold(claim)
        if end.forgiven:
            job.used -= 1
        if claim is not None and claim is not job.claim:
            return  # a later attempt is known: what this one left behind is over
        job.plain = False
        if end.state in ENDED:
            self._finish(job, end.op, end.state)
        elif end.state == "paused" and self._stays(job, end.op):
            job.rest = ("paused", end.op)
            world.may_halt(job)
        elif end.delay:
            job.due, job.due_line = end.op.lo.t + end.delay, end.op.line
            job.due_forward = world.forward

    def _finish(self, job: Job, op: Op, state: str) -> None:
        job.last_end, job.last_state = op, state
        job.rest, job.request = None, None
        if state == "failed":
            self._world.may_halt(job)

    def _reap(self, op: Op) -> None:
        for one in op.result.get("jobs") or ():
            job = self._world.job(one["job"])
            end = End("reap", one["state"], "lost", op)
            claim = job.claim_of(one["attempt"])
            if claim is None:
                self._world.early_ends[one["job"], one["attempt"]] = end
            if claim is not None or one["attempt"] >= job.attempt:
                self._end(claim, end, job)

    def _control(self, op: Op) -> None:
        job, asked = self._world.job(op.call["job"]), bool(op.result.get("asked"))
        for hook in self._tell.hooks("controlled"):
            hook(op, job)
        job.touched, job.plain = op.hi.seq, False
        state = op.result.get("state")
        if op.name in {"resume", "release"}:
            self._goes_on(op, job)
        elif asked:
            self._request(op, job)
        elif op.name == "pause" and state == "paused" and self._stays(job, op):
            job.rest = ("paused", op)
            self._world.may_halt(job)
        elif state == "canceled":
            self._finish(job, op, state)
        elif op.name == "clear":
            job.cleared = True

    def _delete(self, op: Op) -> None:
        for job_id in op.result.get("jobs") or ():
            job = self._world.job(job_id)
            for hook in self._tell.hooks("deleted"):
                hook(op, job)
            job.deleted = op

    def _duty(self, op: Op) -> None:
        for hook in self._tell.hooks("duty"):
            hook(op)

    def _message(self, op: Op) -> None:
        for hook in self._tell.hooks("message"):
            hook(op)

    def _fire(self, op: Op) -> None:
        job_id = op.result.get("job")
        if job_id is not None:  # of a failover that lost one, this may be its id
            self._world.rename(self._world.job(job_id), op)
        for hook in self._tell.hooks("fired"):
            hook(op)

    def _trust(self, op: Op) -> None:
        """The node knows that it has a lease, and from when at the latest it runs."""
        token = op.call["token"]
        jobs = [one["job"] for one in op.result.get("jobs") or ()]
        if op.name == "renew":
            jobs = [op.call["job"]]
        for job_id in jobs:
            claim = self._world.job(job_id).claims.get(token)
            if claim is not None and op.name == "renew":
                claim.trusted_from = max(claim.trusted_from, op.asked.t)

    def _goes_on(self, op: Op, job: Job) -> None:
        job.rest, job.request, job.due = None, None, None
        if op.name == "resume":
            job.resumed = max(job.resumed, op.asked, op.hi)  # at the latest
            job.used, job.cleared = 0, False

    def _request(self, op: Op, job: Job) -> None:
        is_first = job.request is None or job.request[0] != "cancel"
        if is_first and self._stays(job, op):
            job.request = (op.name, op)

    def _stays(self, job: Job, op: Op) -> bool:
        """Nothing that was asked for may let the job go on after this."""
        return not job.unsure and job.resumed.seq < op.lo.seq

    def _may_go_on(self, op: Op) -> None:
        """It may be carried out at once: from here on the job may stand elsewhere."""
        job = self._world.job(op.call["job"])
        job.unsure.add(op.id)
        if op.name in {"resume", "release"}:
            self._goes_on(op, job)
        elif op.name == "clear":
            job.cleared = True

    def _may_end(self, op: Op) -> None:
        claim = self._world.job(op.call["job"]).claims.get(op.call["token"])
        if claim is not None:
            claim.maybe_ends += 1
            self._world.unhold(claim)

    def _has_ended_or_not(self, op: Op) -> None:
        claim = self._world.job(op.call["job"]).claims.get(op.call["token"])
        if claim is not None and claim.maybe_ends:
            claim.maybe_ends -= 1
            self._world.hold(claim)
