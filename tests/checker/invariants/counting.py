"""S20: what is counted, told and stored is the same; S21: crews keep to their bounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.checker.facts import Point, Record, moment
from tests.checker.invariant import Invariant, noted
from tests.checker.seen import Seen, data_of


@dataclass(eq=False)
class CountsAndTable(Invariant, name="S20", needs={"counts", "jobs"}):
    _table: Counter[str] = noted(Counter)
    _counts: tuple[int, dict[str, int]] | None = field(default=None, init=False)

    def final_job(self, line: int, record: Record) -> None:
        self._table[record["state"]] += 1

    def final_counts(self, line: int, record: Record) -> None:
        self._counts = (line, record["by_state"])

    def close(self) -> None:
        if self._counts is None:
            return
        line, counts = self._counts
        for state in sorted({*counts, *self._table}):
            self.cases += 1
            if counts.get(state, 0) != self._table[state]:
                story = f"the store counts {counts.get(state, 0)} {state}, and has "
                self.accuse(None, (line,), f"{story}{self._table[state]}")


@dataclass(eq=False)
class CountsAndEvents(Invariant, name="S20", needs={"counts", "events"}):
    _enqueued: int = field(default=0, init=False)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        self._enqueued += record["type"] == "job.enqueued"

    def final_counts(self, line: int, record: Record) -> None:
        if record.get("enqueued") is None:
            return
        self.cases += 1
        if record["enqueued"] != self._enqueued:
            story = f"the store counts {record['enqueued']} jobs ever made, "
            self.accuse(None, (line,), f"{story}events tell of {self._enqueued}")


@dataclass(eq=False)
class EventsAndTable(Invariant, name="S20", needs={"events", "jobs"}):
    _there: set[int] = noted(set)
    _position: tuple[int, int] = field(default=(0, 0), init=False)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        position, before = record["id"], self._position
        if position <= before[0]:
            story = f"position {position} of an event after position {before[0]}"
            self.accuse(record.get("job_id"), (before[1], line), story)
        self._position = (position, line)

    def final_job(self, line: int, record: Record) -> None:
        self.cases += 1
        self._there.add(record["id"])
        seen = self.world.seen.get(record["id"])
        told = seen.state if seen else "not made"
        if told != record["state"]:
            story = f"job {record['id']} is {record['state']}; events tell that it is {told}"
            self.accuse(record["id"], (seen.line if seen else 0, line), story)

    def close(self) -> None:
        for job_id, seen in self.world.seen.items():
            if seen.state and seen.state != "deleted" and job_id not in self._there:
                story = f"events tell that job {job_id} is {seen.state}; it is not in the store"
                self.accuse(job_id, (seen.line,), story)


@dataclass(eq=False)
class EdgesAndTable(Invariant, name="S20", needs={"edges", "jobs"}):
    _states: dict[int, tuple[str, int]] = noted(dict)

    def edge(self, line: int, record: Record) -> None:
        self._states[record["job"]] = (record["to"], line)

    def final_job(self, line: int, record: Record) -> None:
        if self.world.failovers:
            return
        self.cases += 1
        state, last = self._states.get(record["id"], ("not made", 0))
        if state != record["state"]:
            story = f"job {record['id']} is {record['state']}; its last step made it {state}"
            self.accuse(record["id"], (last, line), story)


@dataclass(eq=False)
class CrewSize(Invariant, name="S21", needs={"crews"}):
    _short: dict[str, tuple[Point, int]] = noted(dict)
    _leaving: set[str] = noted(set)

    def process(self, line: int, record: Record) -> None:
        if record["what"] == "started":
            self._leaving.discard(record["node"])
        else:
            self._leaving.add(record["node"])
            self._short.pop(record["node"], None)

    def fault(self, line: int, record: Record) -> None:
        if record.get("node"):
            self._short.pop(record["node"], None)

    def crew(self, line: int, record: Record) -> None:
        self.cases += 1
        node, size = record["node"], record["size"]
        self._judge(node, line)
        if size > record["max"]:
            self.accuse(None, (line,), f"{node} has {size} workers; at most {record['max']}")
        if size >= record["min"]:
            self._short.pop(node, None)
        elif node not in self._leaving:
            self._short.setdefault(node, (self.world.now, line))

    def close(self) -> None:
        for node in list(self._short):
            self._judge(node, 0)

    def _judge(self, node: str, line: int) -> None:
        bound, since = self.world.bound("react"), self._short.get(node)
        if bound is None or since is None or self.world.now.t - since[0].t <= bound:
            return
        lasted = self.world.now.t - since[0].t
        story = f"{node} had fewer workers than its floor for {lasted:.3f} s"
        self.accuse(None, (since[1], line), story)
        del self._short[node]


@dataclass(eq=False)
class NobodyDismissedEarly(
    Invariant, name="S21", needs={"events", "processes"}, wants=("grace_seconds",)
):
    _draining: dict[str, tuple[float, int]] = noted(dict)
    _at_once: set[str] = noted(set)
    _early: list[tuple[str, tuple[int, ...], str]] = noted(list)
    _told: dict[str, float] = noted(dict)
    _patient: set[str] = noted(set)  # took its time, so what it told it told late

    def process(self, line: int, record: Record) -> None:
        node, t = record["node"], self.world.now.t
        if record["what"] == "told":
            self._told.setdefault(node, t)
            if record.get("at_once"):
                self._at_once.add(node)
        elif record["what"] == "ended":
            since = self._told.pop(node, t)
            if t - since >= self.world.header["grace_seconds"] - self.world.event_slack:
                self._patient.add(node)
        elif record["what"] == "started":
            self._told.pop(node, None)

    def event(self, line: int, record: Record, seen: Seen) -> None:
        node = str(data_of(record).get("node", ""))
        if record["type"] == "node.draining":
            self._draining[node] = (moment(record["at"]), line)
        elif record["type"] == "node.started":
            self._draining.pop(node, None)
        elif record["type"] == "worker.dismissed":
            self._dismissed(line, record, node)

    def _dismissed(self, line: int, record: Record, node: str) -> None:
        self.cases += 1
        since = self._draining.get(node)
        if since is None:
            story = f"{node} dismissed a busy worker, and did not drain"
            self._early.append((node, (line,), story))
            return
        waited = moment(record["at"]) - since[0]
        if waited < self.world.header["grace_seconds"] - self.world.event_slack:
            story = f"{node} dismissed a busy worker {waited:.3f} s after it began to drain"
            self._early.append((node, (since[1], line), story))

    def close(self) -> None:
        for node, lines, story in self._early:
            if node not in self._at_once | self._patient:
                self.accuse(None, lines, story)
