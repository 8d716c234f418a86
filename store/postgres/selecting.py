"""Bulk actions: values to parameters and rows to values. No decisions."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.control import Candidate, Look, Selection
from musterd.store.lifecycle import Action, JobState
from musterd.store.postgres.arrays import numbers, texts, words
from musterd.store.postgres.rows import Params, Row

ID_MAX = 2**63 - 1


def selection(which: Selection, after_id: int, span: int) -> Params:
    return {
        "states": words(which.states),
        "walks": which.walks,
        "resting": words(which.resting),
        "leased": which.leased,
        "kinds": texts(which.kinds) if which.kinds else None,
        "targets": texts(which.targets) if which.targets else None,
        "priorities": numbers(which.priorities) if which.priorities else None,
        "older": which.older_seconds,
        "after": after_id,
        "until": ID_MAX if which.until_id is None else which.until_id,
        "span": span,
    }


def look(found: Sequence[Row]) -> Look:
    fitting = [Candidate(id_, kind, JobState(state)) for id_, kind, state, fits in found if fits]
    return Look(fitting, found[-1][0] if found else None)


def bulk(action: Action, ids: Sequence[int], which: Selection) -> Params:
    return {
        "action": action.value,
        "ids": numbers(ids),
        "states": words(which.states),
        "older": which.older_seconds,
    }
