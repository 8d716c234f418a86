"""What is wrong with a file or a setting, said so that its reader can mend it."""

from collections.abc import Iterable

from attrs import frozen


@frozen
class Fault:
    """One thing that is wrong: where it stands, what was found, what is wanted, what to do."""

    source: str
    line: int | None = None
    key: str = ""
    found: str = ""
    wanted: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        said = ": ".join(part for part in (place, self.key, self._complaint()) if part)
        return f"{said} - {self.hint}" if self.hint else said

    def _complaint(self) -> str:
        if self.found and self.wanted:
            return f"found {self.found}, wanted {self.wanted}"
        return self.found or self.wanted


class ConfigError(Exception):
    """The configuration or the catalog cannot be used; holds every fault, in reading order."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = _in_reading_order(tuple(faults))
        super().__init__(self.faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


def _in_reading_order(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    ranks = {source: rank for rank, source in enumerate({each.source: 0 for each in faults})}
    return tuple(sorted(faults, key=lambda each: (ranks[each.source], each.line or 0)))


@frozen
class ConstraintFault:
    """A constraint between keys that does not hold; `keys` could give, the likeliest first."""

    keys: tuple[str, ...]
    found: str
    wanted: str
    hint: str = ""


class Unfit(ValueError):
    """A value does not fit its key; says what would."""

    def __init__(self, wanted: str, hint: str = "") -> None:
        self.wanted = wanted
        self.hint = hint
        super().__init__(f"wanted {wanted} - {hint}" if hint else f"wanted {wanted}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Gives the known name that `name` was most likely meant to be, if there is one."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed only when something is wrong

    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Gives the hint that names the nearest known name, or nothing."""
    guess = nearest(name, known)
    return f"did you mean {guess}?" if guess else ""


def either(choices: Iterable[str]) -> str:
    """Joins the choices as a sentence would: a, b or c."""
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last
