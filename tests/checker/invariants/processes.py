"""L5 and L6: a node that is told to stop does, with its children; a stuck one is restarted."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker.facts import Record
from tests.checker.invariant import Invariant, noted


@dataclass(eq=False)
class DrainEnds(Invariant, name="L5", needs={"processes", "faults"}, wants=("bounds.drain",)):
    _told: dict[str, tuple[float, int]] = noted(dict)
    _frozen: set[str] = noted(set)  # they hear only afterwards what they are told

    def fault(self, line: int, record: Record) -> None:
        node = str(record.get("node", ""))
        if record["what"] in {"kill", "freeze"}:
            self._told.pop(node, None)
            self._frozen.add(node)
        elif record["what"] == "thaw":
            self._frozen.discard(node)

    def process(self, line: int, record: Record) -> None:
        node = record["node"]
        if record["what"] == "started":
            self._frozen.discard(node)
        elif record["what"] == "told" and node not in self._frozen:
            self._told.setdefault(node, (self.world.now.t, line))
        elif record["what"] == "ended":
            told = self._told.pop(node, None)
            self.cases += 1
            if told is not None:
                self._judge(node, *told, line)
            if record.get("children"):
                story = f"{node} ended and left {record['children']} processes behind"
                self.accuse(None, (line,), story)

    def close(self) -> None:
        for node, told in self._told.items():
            self._judge(node, *told, 0)

    def _judge(self, node: str, since: float, line: int, until: int) -> None:
        bound = self.world.bound("drain")
        took = self.world.now.t - since
        if bound is not None and took > bound:
            story = f"{node} was told to stop and {'took' if until else 'has not ended for'} "
            self.accuse(None, (line, until), f"{story}{took:.3f} s; {bound} s are allowed")


@dataclass(eq=False)
class StuckIsRestarted(
    Invariant, name="L6", needs={"processes", "faults"}, wants=("bounds.restart",)
):
    _stuck: dict[str, tuple[float, int]] = noted(dict)

    def fault(self, line: int, record: Record) -> None:
        if record["what"] == "wedge":
            self._stuck[str(record.get("node", ""))] = (self.world.now.t, line)
        elif record["what"] == "kill":
            self._stuck.pop(str(record.get("node", "")), None)

    def process(self, line: int, record: Record) -> None:
        stuck = self._stuck.pop(record["node"], None) if record["what"] == "started" else None
        if stuck is not None:
            self._judge(record["node"], *stuck, line)

    def close(self) -> None:
        for node, stuck in self._stuck.items():
            self._judge(node, *stuck, 0)

    def _judge(self, node: str, since: float, line: int, until: int) -> None:
        self.cases += 1
        bound = self.world.bound("restart")
        took = self.world.now.t - since
        if bound is not None and took > bound:
            story = f"{node} was stuck for {took:.3f} s; {bound} s are allowed"
            self.accuse(None, (line, until), story)
