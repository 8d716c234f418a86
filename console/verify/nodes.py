"""Which nodes drain. Pure."""

from __future__ import annotations

from datetime import datetime

import attrs

from musterd.console.verify.docket import Docket
from musterd.console.verify.rules import Rule
from musterd.console.verify.targets import OVERLAP
from musterd.store.events import Event


@attrs.define(eq=False)
class _Runs:
    """Daemons of one name: one is started while another still drains."""

    count: int = 0
    draining: list[tuple[int, datetime]] = attrs.field(factory=list[tuple[int, datetime]])


class Nodes:
    """Judges as long as each start was told: else nobody knows how many daemons have a name. One
    that was killed tells of no end, and so counts as there: nobody is accused then.
    """

    def __init__(self, docket: Docket) -> None:
        self._docket = docket
        self._runs: dict[str, _Runs] = {}
        self._is_whole = True

    def told(self, event: Event) -> None:
        node = event.data.get("node")
        if not isinstance(node, str) or not self._is_whole:
            return
        runs = self._runs.get(node)
        if event.type == "node.started":
            runs = runs or self._runs.setdefault(node, _Runs())
            runs.count += 1
        elif runs is not None and event.type == "node.draining":
            runs.draining.append((event.id, event.at))
        elif runs is not None and event.type == "node.stopped":
            runs.count -= 1
            del runs.draining[:1]
            if runs.count <= 0:
                del self._runs[node]

    def claimed(self, event: Event, node: str) -> None:
        runs = self._runs.get(node)
        if runs is None:
            return
        self._docket.cases[Rule.DRAINING] += 1
        if len(runs.draining) < runs.count:
            return
        position, at = runs.draining[-1]
        if event.at - at > OVERLAP:
            story = f"node {node} claimed job {event.job_id} although it drains"
            self._docket.accuse(Rule.DRAINING, event.job_id, (position, event.id), story)

    def forget(self) -> None:
        """Something is missing in the log."""
        self._runs.clear()
        self._is_whole = False
