"""What keeps a node from taking a new configuration over, though its files are sound. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from musterd.catalog.kinds import Catalog
from musterd.config.faults import ConfigError, Fault
from musterd.config.reload import Changes, unsound


def check_takeover(found: Changes, old: Catalog, new: Catalog) -> None:
    """Raises ConfigError with all faults."""
    if faults := [*unsound(found), *newly_broken(old, new)]:
        raise ConfigError(faults)


def newly_broken(old: Catalog, new: Catalog) -> Iterator[Fault]:
    """A kind that could not run here before holds nothing up: it may be meant for other nodes."""
    for name, kind in new.items():
        before = old.get(name)
        if kind.broken is not None and (before is None or before.broken is None):
            hint = "a node that is to do without this kind takes it at a restart"
            yield Fault(kind.broken, hint=hint)
