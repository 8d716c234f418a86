"""S17: a duty is done by one node at a time, under its own term, and a slot makes one job."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import Op, Record
from tests.checker.invariant import Invariant, noted


@dataclass(slots=True, eq=False)
class Term:
    op: Op
    lease: float
    leased_from: float
    trusted_from: float
    forward: float
    maybe_released: bool = False
    released: Op | None = None
    excused: bool = False


@dataclass(eq=False)
class OneHolder(Invariant, name="S17", needs={"duties"}):
    _terms: dict[tuple[str, str], Term] = noted(dict)
    _holders: dict[str, Term] = noted(dict)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover" and record.get("lost_since") is not None:
            self._holders.clear()

    def asked(self, op: Op) -> None:
        if op.name == "release_duty" and not self.world.commits:
            term = self._terms.get((op.call["duty"], op.call["term"]))
            if term is not None:
                term.maybe_released = True

    def answered(self, op: Op, status: str) -> None:
        if status == "ok" and op.name == "renew_duty":
            term = self._terms.get((op.call["duty"], op.call["term"]))
            if term is not None:
                term.trusted_from = max(term.trusted_from, op.asked.t)

    def duty(self, op: Op) -> None:
        if op.name == "take_duty":
            self._take(op)
            return
        duty = op.call["duty"]
        term = self._terms.get((duty, op.call["term"]))
        holder = self._holders.get(duty)
        if term is None:
            return
        if op.name == "release_duty":
            term.released = op
        elif holder is not None and holder is not term and holder.op.hi.seq < op.lo.seq:
            story = f"{op.node} renewed duty {duty} under a term that {holder.op.node} had ended"
            self.accuse(None, (*term.op.lines, *holder.op.lines, *op.lines), story)
        else:
            term.leased_from = max(term.leased_from, op.lo.t)
            term.forward = self.world.forward

    def _take(self, op: Op) -> None:
        self.cases += 1
        duty, key = op.call["duty"], (op.call["duty"], op.call["term"])
        earlier, holder = self._terms.get(key), self._holders.get(duty)
        if earlier is not None:
            story = f"{op.node} took duty {duty} under a term that was had before"
            self.accuse(None, (*earlier.op.lines, *op.lines), story)
        elif holder is not None and not holder.maybe_released and holder.released is None:
            stepped = self.world.forward - holder.forward
            early = holder.leased_from + holder.lease - stepped - self.world.slack - op.hi.t
            other_way = self._may_be_before(op, float(op.call["lease_seconds"]), holder)
            if early > 0 and not other_way and holder.op.lo.seq > self.world.expired_at.seq:
                story = (
                    f"{op.node} took duty {duty} {early:.3f} s before the lease of "
                    f"{holder.op.node} had run out"
                )
                self.accuse(None, (*holder.op.lines, *op.lines), story)
        lease = float(op.call["lease_seconds"])
        if holder is not None and self._may_be_before(op, lease, holder):
            del self._holders[duty]  # nobody knows which of them has it
            self._terms[key] = Term(op, lease, op.lo.t, op.asked.t, self.world.forward)
            return
        term = Term(op, lease, op.lo.t, op.asked.t, self.world.forward)
        self._terms[key] = self._holders[duty] = term

    def _may_be_before(self, op: Op, lease: float, holder: Term) -> bool:
        """Both were under way at once, and this one's lease had run out when the other took it."""
        return op.lo.seq < holder.op.hi.seq and op.lo.t + lease <= holder.op.hi.t

    def act(self, line: int, record: Record) -> None:
        self.cases += 1
        term = self._terms.get((record["duty"], record["term"]))
        if term is None:
            story = f"duty {record['duty']} was done under a term that nobody has taken"
            self.accuse(None, (line,), story)
            return
        if term.released is not None and self.world.commits:
            story = f"{term.op.node} did duty {record['duty']} and had released it"
            self.accuse(None, (*term.op.lines, *term.released.lines, line), story)
            return
        trust = self.world.header.get("duty_trust_seconds", 0.0)
        deadline = term.trusted_from + term.lease - trust
        t, node = self.world.now.t, term.op.node
        if t <= deadline + self.world.slack:
            return
        look = self.world.header.get("duty_look_seconds", 0.0)
        if self.world.has_not_looked(node, deadline, t, look):
            return
        if self.world.straddles(node, deadline, t) and not term.excused:
            term.excused = True
            return
        story = f"{node} did duty {record['duty']} {t - deadline:.3f} s after it had to stop"
        self.accuse(None, (*term.op.lines, line), story)


@dataclass(eq=False)
class OneJobASlot(Invariant, name="S17", needs={"schedules"}):
    _slots: dict[tuple[str, str], Op] = noted(dict)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "failover" and record.get("lost_since") is not None:
            self._slots.clear()

    def fired(self, op: Op) -> None:
        slot = op.call.get("slot")
        if slot is None:
            return
        self.cases += 1
        first = self._slots.setdefault((op.call["schedule"], str(slot)), op)
        if first is not op:
            story = f"slot {slot} of schedule {op.call['schedule']} was seen to twice"
            self.accuse(op.result.get("job"), (*first.lines, *op.lines), story)


@dataclass(eq=False)
class CountedSlots(Invariant, name="S17", needs={"schedules", "schedule_rows"}):
    """The store's own count lies between what was surely done and what was asked for."""

    _sure: dict[str, int] = noted(dict)
    _asked: dict[str, int] = noted(dict)

    def asked(self, op: Op) -> None:
        if op.name == "fire":
            name = op.call["schedule"]
            self._asked[name] = self._asked.get(name, 0) + 1

    def fired(self, op: Op) -> None:
        if op.result.get("job") is not None:
            name = op.call["schedule"]
            self._sure[name] = self._sure.get(name, 0) + 1

    def final_schedule(self, line: int, record: Record) -> None:
        fired = record.get("fired")
        if fired is None or self.world.failovers:
            return
        self.cases += 1
        name = record["name"]
        low, high = self._sure.get(name, 0), self._asked.get(name, 0)
        if not low <= fired <= high:
            story = f"schedule {name} counts {fired} jobs; it was seen to make {low} to {high}"
            self.accuse(None, (line,), story)
