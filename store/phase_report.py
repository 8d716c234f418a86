"""The phases of a job, for programs and for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from musterd.store.phase_states import rounded
from musterd.store.phases import PhaseRecord, PhaseState
from musterd.store.shown import clock, decoded, span, time_text
from musterd.store.words import count_text, one_line, table


def phase_object(phase: PhaseRecord) -> dict[str, object]:
    return {
        "name": phase.name,
        "state": phase.state.value,
        "progress": rounded(phase.progress),
        "result": decoded(phase.result),
        "attempts": phase.attempts,
        "started_at": time_text(phase.started_at),
        "finished_at": time_text(phase.finished_at),
    }


def phases_table(phases: Sequence[PhaseRecord], now: datetime) -> list[str]:
    rows = [
        (
            one_line(phase.name),
            phase.state.value,
            f"{rounded(phase.progress)} %",
            count_text(phase.attempts),
            "-" if phase.started_at is None else clock(phase.started_at),
            _ran(phase, now) or "-",
        )
        for phase in phases
    ]
    heads = ("phase", "state", "progress", "attempts", "started", "ran")
    return table(heads, rows, right=frozenset({2, 3, 5}))


def _ran(phase: PhaseRecord, now: datetime) -> str:
    return span(phase.started_at, now if phase.state is PhaseState.RUNNING else phase.finished_at)
