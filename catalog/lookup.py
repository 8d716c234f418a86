"""What may be asked of the catalog wherever jobs are made and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musterd.catalog.kinds import Catalog, WorkKind


class UnknownKind(Exception):
    """The catalog has no such kind; `guess` is the one that was most likely meant, if any."""

    def __init__(self, name: str, guess: str | None) -> None:
        super().__init__(f"there is no kind {name!r}")
        self.guess = guess


def known_kind(catalog: Catalog, name: str) -> WorkKind:
    """Gives the kind of that name. Raises `UnknownKind`."""
    known = catalog.get(name)
    if known is None:
        raise UnknownKind(name, catalog.suggest(name))
    return known


def budget_of(catalog: Catalog, kind: str) -> int | None:
    """Gives how many attempts a job of this kind has; None = the kind is not known here."""
    known = catalog.get(kind)
    return None if known is None else known.retry.max_retries + 1
