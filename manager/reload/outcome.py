"""What came of a reload, as values and as objects for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from attrs import field, frozen

from musterd.config.differences import Change, Named
from musterd.config.reload import Changes


@frozen
class Taken:
    """It was taken over, whole. `generation` counts the configurations since the start."""

    generation: int
    changes: Changes
    kinds: Named = field(factory=Named)

    @property
    def result(self) -> str:
        """Whether anything that applies is different from before."""
        found = self.changes
        tenants = (*found.added, *found.removed, *found.moved)
        return "applied" if found.live or tenants or self.kinds.names else "unchanged"


@frozen
class Refused:
    """Nothing was changed; each fault is a line of its own."""

    generation: int
    faults: tuple[str, ...]


@frozen
class NotNow:
    """The node does not reload at the moment, and has not tried to."""

    why: str


Outcome: TypeAlias = Taken | Refused | NotNow


def difference_object(found: Changes, kinds: Named) -> dict[str, Any]:
    """Everything that is different. Secrets are masked."""
    return {
        "changed": _keys(found.keys),
        "restart": list(found.restart),
        "tenants": {
            "added": list(found.added),
            "removed": list(found.removed),
            "moved": list(found.moved),
        },
        "kinds": _named(kinds),
        "schedules": _named(found.schedules),
    }


def taken_object(node: str, taken: Taken) -> dict[str, Any]:
    said = {"node": node, "result": taken.result, "generation": taken.generation}
    return said | difference_object(taken.changes, taken.kinds)


def _keys(changes: Iterable[Change]) -> list[dict[str, object]]:
    return [
        {"key": one.key, "from": one.before, "to": one.after, "applies": one.when}
        for one in changes
    ]


def _named(found: Named) -> dict[str, object]:
    return {
        "added": list(found.added),
        "changed": [{"name": one.name, "keys": _keys(one.keys)} for one in found.changed],
        "removed": list(found.removed),
    }
