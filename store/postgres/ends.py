"""Settlements to parameters, field by field: what is done for each job is done by a built-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from musterd.store.job import AttemptOutcome, JobState, Settlement
from musterd.store.postgres.arrays import ages, numbers, texts_if_any, tokens, words
from musterd.store.postgres.telling import how_far

_FIELDS = {name: attrgetter(name) for name in Settlement._fields}


def settlements(ended: Sequence[Settlement], now_local: float) -> Mapping[str, Any]:
    """An array that is left empty stands for one of nulls, and those of a batch of plain successes
    for what a success has.
    """
    in_order = sorted(ended, key=itemgetter(0))  # by id: two batches lock rows in the same order
    return {
        "ids": numbers(_each(in_order, "id")),
        "tokens": tokens(_each(in_order, "token")),
        "workers": numbers(_each(in_order, "worker")),
        "started_ages": ages(_each(in_order, "started_local"), now_local),
        "ended_ages": ages(_each(in_order, "ended_local"), now_local),
        "results": texts_if_any(_each(in_order, "result")),
        "errors": texts_if_any(_each(in_order, "error")),
        "reasons": texts_if_any(_each(in_order, "reason")),
        "logs": texts_if_any(_each(in_order, "log")),
        "spents": texts_if_any(_each(in_order, "spent")),
        **_beside_success(in_order),
        **how_far(in_order),
    }


def _beside_success(in_order: Sequence[Settlement]) -> Mapping[str, str]:
    states, outcomes = _each(in_order, "state"), _each(in_order, "outcome")
    count = len(in_order)
    if states.count(JobState.SUCCEEDED) == outcomes.count(AttemptOutcome.SUCCEEDED) == count:
        return dict.fromkeys(("states", "outcomes", "delays", "forgive"), "{}")
    return {
        "states": words(states),
        "outcomes": words(outcomes),
        "delays": numbers(_each(in_order, "delay_seconds")),
        "forgive": numbers(_each(in_order, "forgive")),
    }


def settled_keys(ended: Sequence[Settlement]) -> Mapping[str, Any]:
    return {
        "ids": numbers(_each(ended, "id")),
        "tokens": tokens(_each(ended, "token")),
        "attempts": numbers(_each(ended, "attempt")),
        "states": words(_each(ended, "state")),
        "outcomes": words(_each(ended, "outcome")),
    }


def _each(settled: Sequence[Settlement], field: str) -> list[Any]:
    """One field of all of them."""
    return list(map(_FIELDS[field], settled))
