"""Sets of jobs as PostgreSQL multiranges: a few neighbours take hardly more room than one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from musterd.store.postgres.arrays import words


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
