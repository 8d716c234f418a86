"""What is told of the end of attempts and of their progress, as parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from musterd.store.leases import ProgressNote
from musterd.store.postgres.arrays import numbers, texts

Arrays = dict[str, str]
Columns = Mapping[str, Sequence[Any]]  # field by field, each of all settlements in their order

NOTHING: Arrays = dict.fromkeys(("percents", "notes", "phases", "phase_percents"), "{}")


def how_far(each: Columns) -> Arrays:
    """Empty arrays where no attempt says anything."""
    percents, phases = each["percent"], each["phase"]
    if percents.count(None) == phases.count(None) == len(phases):
        return NOTHING
    return {
        "percents": numbers(percents),
        "notes": texts(each["note"]),
        "phases": texts(phase.name if phase else None for phase in phases),
        "phase_percents": numbers(phase.progress if phase else None for phase in phases),
    }


def phases_of(in_order: Sequence[ProgressNote]) -> Arrays:
    return {
        "phases": texts(note.phase for note in in_order),
        "phase_percents": numbers(note.phase_percent for note in in_order),
    }
