"""Faults of files and settings, worded so that the reader can fix them."""

from collections.abc import Collection, Iterable

from attrs import frozen

GUESS = "did you mean "
UNKNOWN_TABLE = "unknown table"


@frozen
class Fault:
    """One fault: where it is, what was found, what is wanted, what to do."""

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


def concerns(fault: Fault, sections: Collection[str]) -> bool:
    """Whether the fault may be about one of these tables: it is in it, it was probably meant for
    it, or nobody can say: a whole source cannot be read, or a table is like none that is known.
    """
    if not fault.key or fault.key.partition(".")[0] in sections:
        return True
    if not fault.hint.startswith(GUESS):
        return fault.found == UNKNOWN_TABLE
    meant = fault.hint.removeprefix(GUESS).removesuffix("?")
    return meant.partition(".")[0] in sections


class ConfigError(Exception):
    """The configuration or the catalog cannot be used; holds all faults in reading order."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        given = tuple(faults)
        ranks = {source: rank for rank, source in enumerate({each.source: 0 for each in given})}
        self.faults = tuple(sorted(given, key=lambda each: (ranks[each.source], each.line or 0)))
        super().__init__(self.faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


@frozen
class ConstraintFault:
    """A broken constraint between keys; any of `keys` could be changed, the likeliest first."""

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
    """The known name that `name` was most likely meant to be, if any."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed only when something is wrong

    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the nearest known name, or ""."""
    guess = nearest(name, known)
    return f"{GUESS}{guess}?" if guess else ""


def either(choices: Iterable[str]) -> str:
    """Joins the choices: a, b or c."""
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last
