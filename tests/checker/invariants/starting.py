"""M5: when attempts started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests.checker.facts import Record, moment
from tests.checker.invariant import Invariant, noted

Attempt = tuple[str, int, int]  # node, job, attempt


class Begun(NamedTuple):
    """What a handler told of its beginning. `life` counts the processes of a node by its name."""

    t: float
    line: int
    node: str
    life: int


@dataclass(eq=False)
class StartsInOrder(Invariant, name="M5", needs={"handlers", "jobs", "processes"}):
    """Within one process of a node, of attempts that ended as it said: what becomes of a lease that
    was lost is told by others. Where nobody tells of commits, handlers begin when they get to it.
    """

    _lives: dict[str, int] = noted(dict)
    _begun: dict[Attempt, Begun | None] = noted(dict)  # None = twice: a failover undid the first
    _started: list[tuple[Begun, float, int, int]] = noted(list)  # when, job, line of its row

    def process(self, line: int, record: Record) -> None:
        if record["what"] == "started":
            self._lives[record["node"]] = self._lives.get(record["node"], 0) + 1

    def fault(self, line: int, record: Record) -> None:
        """Those that began since are lost, and another job may get the same id."""
        since = record.get("lost_since")
        if since is not None:
            undone = [one for one, begun in self._begun.items() if begun and begun.line >= since]
            self._begun.update(dict.fromkeys(undone))

    def begin(self, line: int, record: Record) -> None:
        node = str(record["who"]).removeprefix("node:")
        which = node, record["job"], record["attempt"]
        if not self.world.commits or (record.get("phase") and which not in self._begun):
            return  # a phase begins once the start has been written
        begun = Begun(self.world.now.t, line, node, self._lives.get(node, 0))
        self._begun[which] = None if which in self._begun else begun

    def final_job(self, line: int, record: Record) -> None:
        made_at = record.get("created_at")
        for attempt in record.get("attempts") or ():
            self._note(line, record["id"], made_at and moment(made_at), attempt)

    def _note(self, line: int, job: int, made_at: float | None, attempt: Record) -> None:
        begun = self._begun.get((attempt["node"], job, attempt["attempt"]))
        if begun is None or attempt["outcome"] in {None, "lost"} or attempt["started_at"] is None:
            return  # the last: a failover has undone this beginning, and the next was given back
        self.cases += 1
        start, end = moment(attempt["started_at"]), moment(attempt["finished_at"])
        if not (made_at or start) <= start <= end:
            story = f"job {job} was made at {made_at}, began at {start} and ended at {end}"
            self.accuse(job, (begun.line, line), story)
        self._started.append((begun, start, job, line))

    def close(self) -> None:
        latest: dict[tuple[str, int], tuple[Begun, float, int, int]] = {}
        for one in sorted(self._started, key=lambda each: (each[0].t, each[1])):
            begun, start, job, line = one
            before = latest.get((begun.node, begun.life))
            if before is not None and start < before[1]:
                late = before[1] - start
                story = f"job {job} began after job {before[2]}, and started {late:.6f} s before it"
                self.accuse(job, (before[0].line, begun.line, before[3], line), story)
            else:
                latest[begun.node, begun.life] = one
