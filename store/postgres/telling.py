"""What is told of the end of attempts and of their progress, as parameters."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.job import ProgressNote, Settlement
from musterd.store.postgres.arrays import numbers, texts

Arrays = dict[str, str]

NOTHING: Arrays = dict.fromkeys(("percents", "notes", "phases", "phase_percents"), "{}")


def how_far(in_order: Sequence[Settlement]) -> Arrays:
    """Empty arrays where no attempt says anything."""
    if not any(one.percent is not None or one.phase is not None for one in in_order):
        return NOTHING
    phases = [one.phase for one in in_order]
    return {
        "percents": numbers(one.percent for one in in_order),
        "notes": texts(one.note for one in in_order),
        "phases": texts(phase.name if phase else None for phase in phases),
        "phase_percents": numbers(phase.progress if phase else None for phase in phases),
    }


def phases_of(in_order: Sequence[ProgressNote]) -> Arrays:
    return {
        "phases": texts(note.phase for note in in_order),
        "phase_percents": numbers(note.phase_percent for note in in_order),
    }
