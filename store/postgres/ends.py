"""Settlements to parameters, field by field: what is done for each job is done by a built-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from musterd.store.leases import Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.arrays import ages, numbers, texts_if_any, tokens, words
from musterd.store.postgres.telling import Columns, how_far


def settlements(ended: Sequence[Settlement], now_local: float) -> Mapping[str, Any]:
    """An array that is left empty stands for one of nulls, and those of a batch of plain successes
    for what a success has.
    """
    in_order = sorted(ended, key=itemgetter(0))  # by id: two batches lock rows in the same order
    each = _columns(in_order)
    return {
        "ids": numbers(each["id"]),
        "tokens": tokens(each["token"]),
        "workers": numbers(each["worker"]),
        "started_ages": ages(each["started_local"], now_local),
        "ended_ages": ages(each["ended_local"], now_local),
        "results": texts_if_any(each["result"]),
        "errors": texts_if_any(each["error"]),
        "reasons": texts_if_any(each["reason"]),
        "logs": texts_if_any(each["log"]),
        "spents": texts_if_any(each["spent"]),
        **_beside_success(each),
        **how_far(each),
    }


def _beside_success(each: Columns) -> Mapping[str, str]:
    states, outcomes = each["state"], each["outcome"]
    count = len(states)
    if states.count(JobState.SUCCEEDED) == outcomes.count(AttemptOutcome.SUCCEEDED) == count:
        return dict.fromkeys(("states", "outcomes", "delays", "forgive"), "{}")
    return {
        "states": words(states),
        "outcomes": words(outcomes),
        "delays": numbers(each["delay_seconds"]),
        "forgive": numbers(each["forgive"]),
    }


def settled_keys(ended: Sequence[Settlement]) -> Mapping[str, Any]:
    each = _columns(ended)
    return {
        "ids": numbers(each["id"]),
        "tokens": tokens(each["token"]),
        "attempts": numbers(each["attempt"]),
        "states": words(each["state"]),
        "outcomes": words(each["outcome"]),
    }


def _columns(ended: Sequence[Settlement]) -> Columns:
    columns = zip(*ended, strict=True) if ended else repeat(())
    return dict(zip(Settlement._fields, columns, strict=False))
