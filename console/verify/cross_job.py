"""Rules beyond one job: a target has one job at a time, a draining node claims nothing. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from musterd.console.verify.life import Life
from musterd.console.verify.rules import Findings, Rule
from musterd.store.events import Event
from musterd.store.lifecycle import JobState

# A halt is logged before the target is locked, so a claim on its way may be logged after it. No
# claim waits for a lock for longer than this.
OVERLAP = timedelta(seconds=10)
_LETS_GO = frozenset({JobState.SUCCEEDED, JobState.CANCELED})


@attrs.define(eq=False)
class _TargetState:
    holder: int | None = None
    claimed: int = 0  # the position of the claim
    halting: dict[int, tuple[int, datetime]] = attrs.field(factory=dict[int, tuple[int, datetime]])


class Targets:
    """Remembers the targets that a job has or halts, and no others."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._places: dict[str, _TargetState] = {}

    def claimed(self, event: Event, target: str, job_id: int, *, is_known: bool) -> None:
        """`is_known`: if the job had had the target before, the log would say so."""
        place = self._places.setdefault(target, _TargetState())
        self._findings.cases[Rule.TARGET] += 1
        if place.holder not in (None, job_id):
            story = (
                f"job {job_id} of target {target!r} was claimed although job {place.holder} had"
                " the target and had not ended"
            )
            self._findings.add(Rule.TARGET, job_id, (place.claimed, event.id), story)
        elif place.holder is None and is_known:
            self._judge_halt(event, target, place, job_id)
        place.holder, place.claimed = job_id, event.id
        place.halting.pop(job_id, None)

    def changed(self, event: Event, target: str, life: Life, job_id: int) -> None:
        """After any other event that made something else of a job."""
        place = self._places.get(target)
        if life.halts:
            place = place or self._places.setdefault(target, _TargetState())
            place.halting.setdefault(job_id, (event.id, event.at))
            return
        if place is None:
            return
        place.halting.pop(job_id, None)
        if place.holder == job_id and (life.state in _LETS_GO or life.is_cleared):
            place.holder = None
        if place.holder is None and not place.halting:
            del self._places[target]

    def forget(self) -> None:
        """Something is missing in the log."""
        self._places.clear()

    def _judge_halt(self, event: Event, target: str, place: _TargetState, job_id: int) -> None:
        self._findings.cases[Rule.HALTED] += 1
        for other, (position, at) in place.halting.items():
            if other != job_id and event.at - at > OVERLAP:
                story = f"job {job_id} of target {target!r} was claimed while job {other} halted it"
                self._findings.add(Rule.HALTED, job_id, (position, event.id), story)
                return


@attrs.define(eq=False)
class _NodeRuns:
    """Daemons of one name: one is started while another still drains."""

    count: int = 0
    draining: list[tuple[int, datetime]] = attrs.field(factory=list[tuple[int, datetime]])


class Nodes:
    """Judges only while the log has each node's start: else nobody knows how many have a name. A
    killed node logs no end and counts as running, so that nothing is reported wrongly.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._runs: dict[str, _NodeRuns] = {}
        self._is_whole = True

    def take(self, event: Event) -> None:
        node = event.data.get("node")
        if not isinstance(node, str) or not self._is_whole:
            return
        runs = self._runs.get(node)
        if event.type == "node.started":
            runs = runs or self._runs.setdefault(node, _NodeRuns())
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
        self._findings.cases[Rule.DRAINING] += 1
        if len(runs.draining) < runs.count:
            return
        position, at = runs.draining[-1]
        if event.at - at > OVERLAP:
            story = f"node {node} claimed job {event.job_id} while draining"
            self._findings.add(Rule.DRAINING, event.job_id, (position, event.id), story)

    def forget(self) -> None:
        """Something is missing in the log."""
        self._runs.clear()
        self._is_whole = False
