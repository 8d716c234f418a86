"""The tables within a kind's table: retry, budgets, rlimits, http. Each fault has its own line."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from attrs import AttrsInstance, evolve, frozen
from cattrs import Converter

from musterd.catalog import shapes
from musterd.catalog.tables import HttpTable, RlimitTable
from musterd.config.document import Document
from musterd.config.faults import Fault, Unfit
from musterd.config.retention import Ages, is_sound
from musterd.config.settings import Retry
from musterd.config.strict import Reading, misfit, read_table
from musterd.config.toml_text import key_text, plain_number, short_text, sort_of

KeyNames: TypeAlias = tuple[str | int, ...]

_BUDGET_MAX = 10**15
_NOTHING = Reading({}, ())


@frozen
class Inner:
    """What the inner tables of one kind hold, and their faults."""

    retry: Mapping[str, Any]
    budgets: Mapping[str, int]
    rlimits: Mapping[str, int]
    http: Mapping[str, Any]
    headers: Mapping[str, str]
    header_files: Mapping[str, Path]
    faults: tuple[Fault, ...]
    retention: Ages


def read_inner(
    document: Document, path: KeyNames, retry: Retry | None, converter: Converter
) -> Inner:
    """Reads them all; one that is no table at all is the outer table's fault. `retry` None: what is
    read is a phase, which leaves retries and budgets to its kind.
    """

    def read(key: str, shape: type[AttrsInstance]) -> Reading:
        if table_at(document, (*path, key)) is None:
            return _NOTHING
        return read_table(document, (*path, key), shape, converter)

    http = read("http", HttpTable)
    override = read("retry", Retry) if retry is not None else _NOTHING
    rlimits = read("rlimits", RlimitTable)
    budgets = _read_each(document, (*path, "budgets"), _budget) if retry is not None else _NOTHING
    headers = _read_each(document, (*path, "http", "headers"), _header)
    files = _read_each(document, (*path, "http", "header_files"), _header_file)
    retention = read("retention", Ages)
    readings = (rlimits, budgets, http, headers, files, retention)
    faults = [
        *(_with_sound_delays(document, (*path, "retry"), override, retry) if retry else ()),
        *(fault for each in readings for fault in each.faults),
        *_missing_url(document, (*path, "http")),
        *_unsound_ages(document, (*path, "retention"), retention),
        *_double_headers(document, (*path, "http")),
    ]
    return Inner(
        retry=override.values,
        budgets=budgets.values,
        rlimits=rlimits.values,
        http=http.values,
        headers=headers.values,
        header_files={name: document.folder / file for name, file in files.values.items()},
        faults=tuple(faults),
        retention=Ages(**retention.values),
    )


def table_at(document: Document, path: KeyNames) -> Mapping[str, object] | None:
    """Gives the table that stands at `path`, None if there is none."""
    found: object = document.data
    for part in path:
        if isinstance(part, int):  # of a list whose elements were counted
            found = cast(list[object], found)[part]
        else:
            found = (_table(found) or {}).get(part)
    return _table(found)


def _table(found: object) -> dict[str, object] | None:
    return cast(dict[str, object], found) if isinstance(found, dict) else None


def _read_each(document: Document, path: KeyNames, fit: Callable[[str, object], object]) -> Reading:
    """Reads a table whose keys may be any names."""
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, raw in (table_at(document, path) or {}).items():
        try:
            values[name] = fit(name, raw)
        except Unfit as unfit:
            faults.append(misfit(document, (*path, name), _shown(str(path[-1]), raw), unfit))
    return Reading(values, tuple(faults))


def _shown(table: str, raw: object) -> str:
    return sort_of(raw) if table == "headers" else short_text(raw)  # a header may be a secret


def _budget(name: str, raw: object) -> int:
    if not name.isidentifier():
        raise Unfit("a name of letters, digits and _", "it is spent as job.spend(NAME=amount)")
    if type(raw) is int and 1 <= raw <= _BUDGET_MAX:
        return raw
    raise Unfit(f"a whole number, 1 to {_BUDGET_MAX}")


def _header(name: str, raw: object) -> str:
    shapes.header_name(name)
    return shapes.header_value(raw)


def _header_file(name: str, raw: object) -> Path:
    shapes.header_name(name)
    if isinstance(raw, str) and raw and raw.isprintable():
        return Path(raw)
    raise Unfit("the path of a file that holds the header's value")


def _with_sound_delays(
    document: Document, path: KeyNames, override: Reading, retry: Retry
) -> Iterator[Fault]:
    yield from override.faults
    policy = evolve(retry, **override.values)
    if not override.values or policy.base_seconds <= policy.max_seconds:
        return
    blamed = "base_seconds" if "base_seconds" in override.values else "max_seconds"
    base, most = plain_number(policy.base_seconds), plain_number(policy.max_seconds)
    found = str(base if blamed == "base_seconds" else most)
    unfit = Unfit(f"base_seconds <= max_seconds (here {base} and {most})")
    yield misfit(document, (*path, blamed), found, unfit)


def _unsound_ages(document: Document, path: KeyNames, ages: Reading) -> Iterator[Fault]:
    if not is_sound(Ages(**ages.values)):
        found = f"{plain_number(ages.values['delete_after_hours'])}"
        stale = plain_number(ages.values["stale_after_hours"])
        wanted = f"stale_after_hours <= delete_after_hours (stale_after_hours is {stale})"
        yield misfit(document, (*path, "delete_after_hours"), found, Unfit(wanted))


def _missing_url(document: Document, path: KeyNames) -> Iterator[Fault]:
    http = table_at(document, path)
    if http is not None and "url" not in http:
        yield misfit(document, path, "no url", Unfit("the url to call"))


def _double_headers(document: Document, path: KeyNames) -> Iterator[Fault]:
    """Headers of one name, however it is spelt: which of them would be sent?"""
    first: dict[str, KeyNames] = {}
    for each in _header_paths(document, path):
        name = str(each[-1]).lower()
        if name in first:
            hint = f"the first is at {document.origin(first[name])}"
            found = f"a second header {name}"
            yield Fault(document.source, document.line(each), key_text(each), found, hint=hint)
        first.setdefault(name, each)


def _header_paths(document: Document, path: KeyNames) -> Iterable[KeyNames]:
    for table in ("headers", "header_files"):
        for name in table_at(document, (*path, table)) or {}:
            yield (*path, table, name)
