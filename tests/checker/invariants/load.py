"""L4, L7, L8: an outage is made up for, one bad job does not hold the others up, nobody starves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.checker.facts import ENDED, Claim, End, Job, Op, Point, Record
from tests.checker.invariant import Invariant, noted
from tests.checker.world import CALM_FAULTS

SHARE = 0.9  # of the rate before an outage
WINDOW_SECONDS = 10.0


@dataclass(eq=False)
class RateComesBack(Invariant, name="L4", needs={"claims", "faults"}, wants=("bounds.recovery",)):
    """For a load that is always more than is done, from before the outage to the end."""

    _ends: list[float] = noted(list)
    _outages: list[tuple[float, int]] = noted(list)
    _backs: list[tuple[float, int]] = noted(list)
    _other_faults: list[float] = noted(list)

    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        if end.state in ENDED:
            self._ends.append(self.world.now.t)

    def fault(self, line: int, record: Record) -> None:
        t = self.world.now.t
        if record["what"] == "store_away":
            self._outages.append((t, line))
        elif record["what"] == "store_back":
            self._backs.append((t, line))
        elif record["what"] not in CALM_FAULTS:
            self._other_faults.append(t)

    def close(self) -> None:
        recovery = self.world.bound("recovery")
        if recovery is None:
            return
        for (away, line), (back, back_line) in zip(self._outages, self._backs, strict=False):
            start = back + recovery
            if start + WINDOW_SECONDS > self.world.now.t or self._disturbed(away, start):
                continue
            self.cases += 1
            before = self._done(away - WINDOW_SECONDS, away)
            after = self._done(start, start + WINDOW_SECONDS)
            if after < SHARE * before:
                story = (
                    f"{before / WINDOW_SECONDS:.1f} jobs a second ended before the outage, "
                    f"{after / WINDOW_SECONDS:.1f} once it was {recovery} s over"
                )
                self.accuse(None, (line, back_line), story)

    def _done(self, since: float, until: float) -> int:
        return bisect_left(self._ends, until) - bisect_left(self._ends, since)

    def _disturbed(self, away: float, start: float) -> bool:
        other = [*self._other_faults, *(t for t, _ in self._outages if t != away)]
        return any(away - WINDOW_SECONDS < t < start + WINDOW_SECONDS for t in other)


@dataclass(eq=False)
class NobodyWaitsLong(
    Invariant, name="L8", needs={"claims", "clients", "faults"}, wants=("bounds.wait",)
):
    """Of jobs that could have been claimed at once: plain ones, without a target."""

    _waiting: dict[int, Op] = noted(dict)
    _poison: set[int] = noted(set)
    _poisoned_at: float | None = field(default=None, init=False)

    bound_name = "wait"
    while_poisoned = False

    def made(self, op: Op, job: Job) -> None:
        odd = op.call.get("delay_seconds") or op.call.get("hold") or op.call.get("target")
        capped = op.call.get("kind") in (self.world.header.get("caps") or {})
        if not odd and not capped and job.attempt == 0 and op.result.get("new") is not False:
            self._waiting[job.id] = op

    def asked(self, op: Op) -> None:
        if op.name == "pause_queue":
            self._waiting.clear()
        elif "job" in op.call and op.name in {"cancel", "pause"}:
            self._waiting.pop(op.call["job"], None)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "poison":
            self._poison.add(record["job"])
            self._poisoned_at = self.world.now.t
        elif record["what"] not in CALM_FAULTS:
            self._waiting.clear()  # what waits through a fault waits for the healing

    def claimed(self, claim: Claim, job: Job) -> None:
        op = self._waiting.pop(job.id, None)
        if op is not None and job.id not in self._poison:
            self._judge(op, claim.op.lo, claim.op.lines)

    def close(self) -> None:
        if not self.world.unsure_claims:
            for op in self._waiting.values():
                self._judge(op, self.world.now, ())

    def _judge(self, op: Op, until: Point, lines: Sequence[int]) -> None:
        bound, calm = self.world.bound(self.bound_name), self.world.calm_since
        poisoned = self._poisoned_at is not None and until.t >= self._poisoned_at
        if bound is None or calm is None or poisoned is not self.while_poisoned:
            return
        self.cases += 1
        waited = until.t - max(op.hi.t, calm)
        if waited > bound:
            job_id = op.result["job"]
            why = " beside a poisonous one" if self.while_poisoned else ""
            story = f"job {job_id} waited {waited:.3f} s{why}; {bound} s are allowed"
            self.accuse(job_id, (*op.lines, *lines), story)


class PoisonIsContained(NobodyWaitsLong, name="L7", wants=("bounds.poison_wait",)):
    bound_name = "poison_wait"
    while_poisoned = True
