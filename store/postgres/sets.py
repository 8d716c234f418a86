"""Sets of jobs as PostgreSQL multiranges: a few neighbours take hardly more room than one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from musterd.store.postgres.arrays import numbers, texts, words


def given_params(jobs: Iterable[tuple[int, UUID]]) -> dict[str, str]:
    """The jobs under each token; tokens are few, and most share one object."""
    by_token: dict[UUID, list[int]] = {}
    latest: UUID | None = None
    ids: list[int] = []
    for job_id, token in jobs:
        if token is not latest:  # the hash of one is dear
            latest, ids = token, by_token.setdefault(token, [])
        ids.append(job_id)
    tokens = sorted(by_token)
    return {
        "tokens": words(tokens),
        "sets": "{" + ",".join(f'"{multirange(by_token[token])}"' for token in tokens) + "}",
    }


def ended_params(jobs: Iterable[tuple[int, UUID, str | None]]) -> dict[str, str]:
    """The jobs under each token and target, and the place of each one's token; where there is one
    token that is not said.
    """
    places: dict[UUID, int] = {}
    sets: dict[tuple[int, str | None], list[int]] = {}
    which: list[int] = []
    place, latest = 0, None
    for job_id, token, target in jobs:
        if token is not latest:  # the hash of one is dear
            place, latest = places.setdefault(token, len(places) + 1), token
        key = place, target
        if key in sets:
            sets[key].append(job_id)
        else:
            sets[key] = [job_id]
        which.append(place)
    tokens = [str(token) for token in places]
    return {
        "tokens": words(tokens),
        "which": numbers(which) if len(tokens) > 1 else "{}",
        "set_tokens": words(tokens[place - 1] for place, _ in sets),
        "set_targets": texts(target or "" for _, target in sets),
        "sets": "{" + ",".join(f'"{multirange(ids)}"' for ids in sets.values()) + "}",
    }


def multirange(ids: Sequence[int]) -> str:
    """Each of them once, in any order."""
    first, last = ids[0], ids[-1]
    if last - first + 1 == len(ids) and list(ids) == list(range(first, last + 1)):
        return f"{{[{first},{last}]}}"
    stretches: list[str] = []
    in_order = sorted(ids)
    begun = before = in_order[0]
    for one in in_order[1:]:
        if one != before + 1:
            stretches.append(f"[{begun},{before}]")
            begun = one
        before = one
    stretches.append(f"[{begun},{before}]")
    return "{" + ",".join(stretches) + "}"
