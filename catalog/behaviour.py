"""From the keys of a kind or a phase to its behaviour. Each fault has its own line."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import attrs
from attrs import AttrsInstance, evolve, frozen

from musterd.catalog.kinds import Behaviour, Command, Delay, Deterministic, HttpCall, Python
from musterd.catalog.tables import (
    BEHAVIOUR_KEYS,
    DoingTable,
    HttpTable,
    KindTable,
    PhaseTable,
    RlimitTable,
    header_name,
    header_value,
)
from musterd.config.document import Document, KeyPath
from musterd.config.faults import Fault, Unfit, either
from musterd.config.retention import Ages, is_sound
from musterd.config.settings import Retry
from musterd.config.strict import Reading, misfit, read_table
from musterd.config.toml_text import key_text, plain_number, short_text, sort_of

_BUDGET_MAX = 10**15
_NOTHING = Reading({}, ())


@frozen
class Inner:
    """The contents of one kind's inner tables, and their faults."""

    retry: Mapping[str, Any]
    budgets: Mapping[str, int]
    rlimits: Mapping[str, int]
    http: Mapping[str, Any]
    headers: Mapping[str, str]
    header_files: Mapping[str, Path]
    faults: tuple[Fault, ...]
    retention: Ages


def read_inner(document: Document, path: KeyPath, retry: Retry | None) -> Inner:
    """Reads all inner tables; if one is not a table, the outer table's reading has the fault.
    `retry` None: a phase, which leaves retries and budgets to its kind.
    """

    def read(key: str, shape: type[AttrsInstance]) -> Reading:
        if table_at(document, (*path, key)) is None:
            return _NOTHING
        return read_table(document, (*path, key), shape)

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
        *missing_key(document, (*path, "http"), "url", "the url to call"),
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


def table_at(document: Document, path: KeyPath) -> Mapping[str, object] | None:
    """The table at `path`, if there is one."""
    found: object = document.data
    for part in path:
        if isinstance(part, int):  # of a list whose elements were counted
            found = cast(list[object], found)[part]
        else:
            found = (_table(found) or {}).get(part)
    return _table(found)


def _table(found: object) -> dict[str, object] | None:
    return cast(dict[str, object], found) if isinstance(found, dict) else None


def _read_each(document: Document, path: KeyPath, fit: Callable[[str, object], object]) -> Reading:
    """Reads a table whose keys are free names."""
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, raw in (table_at(document, path) or {}).items():
        try:
            values[name] = fit(name, raw)
        except Unfit as unfit:
            # A header may be a secret.
            shown = sort_of(raw) if path[-1] == "headers" else short_text(raw)
            faults.append(misfit(document, (*path, name), shown, unfit))
    return Reading(values, tuple(faults))


def _budget(name: str, raw: object) -> int:
    if not name.isidentifier():
        raise Unfit("a name of letters, digits and _", "it is spent as job.spend(NAME=amount)")
    if type(raw) is int and 1 <= raw <= _BUDGET_MAX:
        return raw
    raise Unfit(f"a whole number, 1 to {_BUDGET_MAX}")


def _header(name: str, raw: object) -> str:
    header_name(name)
    return header_value(raw)


def _header_file(name: str, raw: object) -> Path:
    header_name(name)
    if isinstance(raw, str) and raw and raw.isprintable():
        return Path(raw)
    raise Unfit("the path of a file that holds the header's value")


def _with_sound_delays(
    document: Document, path: KeyPath, override: Reading, retry: Retry
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


def _unsound_ages(document: Document, path: KeyPath, ages: Reading) -> Iterator[Fault]:
    if not is_sound(Ages(**ages.values)):
        found = f"{plain_number(ages.values['delete_after_hours'])}"
        stale = plain_number(ages.values["stale_after_hours"])
        wanted = f"stale_after_hours <= delete_after_hours (stale_after_hours is {stale})"
        yield misfit(document, (*path, "delete_after_hours"), found, Unfit(wanted))


def missing_key(document: Document, path: KeyPath, key: str, wanted: str) -> Iterator[Fault]:
    """A fault if the table at `path` is there and lacks this key."""
    table = table_at(document, path)
    if table is not None and key not in table:
        yield misfit(document, path, f"no {key}", Unfit(wanted))


def _double_headers(document: Document, path: KeyPath) -> Iterator[Fault]:
    """Two headers of the same name, in any spelling: it would be unclear which one is sent."""
    tables = ((*path, "headers"), (*path, "header_files"))
    places = ((*table, name) for table in tables for name in table_at(document, table) or {})
    named = ((document, str(place[-1]).lower(), place) for place in places)
    return second_ones(named, "a second header {}")


def second_ones(named: Iterable[tuple[Document, str, KeyPath]], what: str) -> Iterator[Fault]:
    """A fault for each name that was given before; `what` may show it."""
    first: dict[str, str] = {}
    for document, name, path in named:
        if name in first:
            hint, line = f"the first is at {first[name]}", document.line(path)
            yield Fault(document.source, line, key_text(path), what.format(name), hint=hint)
        first.setdefault(name, document.origin(path))


_REAL = ("python", "command", "http", "phases", "delay_seconds", "delay_from")
_DETERMINISTIC = ("duration_ms", "outcome")  # either makes a kind one
_WANTED = {
    "kind": "python, command, http, phases or duration_ms",
    "phase": "python, command, http, delay_seconds, delay_from or duration_ms",
}

Keys: TypeAlias = Mapping[str, object]
Table: TypeAlias = type[KindTable] | type[PhaseTable]


def faults_of_keys(
    document: Document, path: KeyPath, shape: Table, found: Iterable[Fault]
) -> Iterator[Fault]:
    """The faults of a kind or phase with no behaviour, with two, or with keys of another one; and
    `found`, those of its table, with better hints.
    """
    keys = table_at(document, path)
    if keys is None:
        yield from found
        return
    yield from _behaviour_faults(document, path, keys, shape)
    known = f"known: {', '.join(keys_beside(keys, shape))}"
    of_the_whole = {key_text((*path, key)) for key in attrs.fields_dict(KindTable)}
    for fault in found:
        hint = known if fault.hint.startswith("known: ") else fault.hint
        if shape is PhaseTable and fault.found == "unknown key" and fault.key in of_the_whole:
            hint = "it is a key of the whole kind"
        yield evolve(fault, hint=hint)


def _behaviour_faults(
    document: Document, path: KeyPath, keys: Keys, shape: Table
) -> Iterator[Fault]:
    what = "kind" if shape is KindTable else "phase"
    first, *others = [key for key in keys if key in _real_of(shape)] or [""]
    if not first and keys.keys().isdisjoint(_DETERMINISTIC):
        yield misfit(document, path, "no behaviour", Unfit(_WANTED[what]))
        return
    for key in others:
        hint = f"a {what} has one: {first} is at {document.origin((*path, first))}"
        yield _fault(document, (*path, key), "a second behaviour", hint)
    chosen = {first, *others} if first else {"deterministic"}
    for key in keys:
        owners = _OWNERS.get(key, ()) if key in attrs.fields_dict(shape) else ()
        if owners and chosen.isdisjoint(owners):
            found = f"does not go with {first or f'a deterministic {what}'}"
            hint = f"it is a key of {either(owners)} {what}s"
            if first == "phases":
                hint = "it is a key of each phase"
            yield _fault(document, (*path, key), found, hint)


def keys_beside(keys: Keys, shape: Table) -> tuple[str, ...]:
    """The keys that may be given together with these."""
    real = _real_of(shape)
    chosen = {key for key in keys if key in real}
    if not chosen:
        chosen = {"deterministic"} if keys.keys() & set(_DETERMINISTIC) else set(real)
    return tuple(
        key
        for key in attrs.fields_dict(shape)
        if not chosen.isdisjoint(_OWNERS.get(key, (key,)))
        or (key not in _OWNERS and key not in _REAL)
    )


def make_behaviour(table: DoingTable, inner: Inner, search_path: tuple[Path, ...]) -> Behaviour:
    """The behaviour of a kind without phases, or of a phase. There must be no faults."""
    if isinstance(table, PhaseTable) and table.delay_from is not None:
        return Delay(None, *table.delay_from)
    if isinstance(table, PhaseTable) and table.delay_seconds is not None:
        return Delay(table.delay_seconds)
    if table.python is not None:
        return Python(*table.python, table.isolation, search_path, table.user)
    if table.command is not None:
        return Command(
            argv=table.command,
            cwd=table.cwd and Path(os.path.normpath(search_path[0] / table.cwd)),
            umask=table.umask,
            environment=table.environment,
            rlimits=MappingProxyType(dict(inner.rlimits)),
            retry_on_exit=table.retry_on_exit,
            snooze_on_exit=table.snooze_on_exit,
            snooze_seconds=table.snooze_seconds,
            user=table.user,
        )
    if table.http is not None:
        return _http_call(HttpTable(**inner.http), inner)
    return Deterministic(*table.duration_ms, table.outcome, table.fail_first)


def _http_call(table: HttpTable, inner: Inner) -> HttpCall:
    return HttpCall(
        method=table.method,
        url=table.url,
        headers=MappingProxyType(dict(inner.headers)),
        header_files=MappingProxyType(dict(inner.header_files)),
    )


def _real_of(shape: Table) -> tuple[str, ...]:
    return tuple(key for key in _REAL if key in attrs.fields_dict(shape))


def _fault(document: Document, path: KeyPath, found: str, hint: str) -> Fault:
    return Fault(document.source, document.line(path), key_text(path), found, hint=hint)


_OWNERS = {
    key: tuple(owner for owner, owned in BEHAVIOUR_KEYS.items() if key in owned)
    for key in chain.from_iterable(BEHAVIOUR_KEYS.values())
}
