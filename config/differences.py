"""What differs between two configurations, as values that can be told: secrets masked."""

from collections.abc import Mapping
from typing import TypeAlias

from attrs import Attribute, frozen

from musterd.config.toml_text import plain
from musterd.config.validators import When

Told: TypeAlias = Mapping[str, object]  # JSON, by dotted key


@frozen
class Change:
    """One value. None = nothing stood there, or stands there now."""

    key: str
    before: object
    after: object
    when: When


@frozen
class Altered:
    """A kind or a schedule that is there before and after, with what is different about it."""

    name: str
    keys: tuple[Change, ...]


@frozen
class Named:
    """What differs between two sets of things with names."""

    added: tuple[str, ...] = ()
    changed: tuple[Altered, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of all that are not as they were."""
        return tuple(sorted((*self.added, *self.removed, *(one.name for one in self.changed))))


def named_changes(old: Mapping[str, Told], new: Mapping[str, Told], when: When) -> Named:
    """Each by name, with what is told of it."""
    both = sorted(old.keys() & new.keys())
    altered = [Altered(name, told_changes(old[name], new[name], when)) for name in both]
    return Named(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(one for one in altered if one.keys),
        removed=tuple(sorted(old.keys() - new.keys())),
    )


def told_changes(old: Told, new: Told, when: When) -> tuple[Change, ...]:
    """In the order of the keys as they were, those that are new behind them."""
    names = {**old, **new}
    return tuple(
        Change(name, old.get(name), new.get(name), when)
        for name in names
        if old.get(name) != new.get(name)
    )


def shown(attribute: "Attribute[object]", value: object) -> object:
    """A setting's value in JSON's types, a secret as `***`."""
    mask = attribute.metadata.get("mask")
    return mask(value) if mask else plain(value)
