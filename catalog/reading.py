"""One catalog file's tables, made into kinds."""

import re
from collections.abc import Iterator, Mapping
from typing import cast

from attrs import evolve

from musterd.catalog.kinds import Deterministic, RetryPolicy, WorkKind
from musterd.catalog.tables import KindTable, catalog_converter
from musterd.config.document import Document
from musterd.config.faults import Fault, Unfit
from musterd.config.settings import Retry
from musterd.config.strict import Reading, misfit, read_table, unknown_key
from musterd.config.toml_text import key_text, plain_number, sort_of, toml_text

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,99}")
_NAME_WANTED = "a letter, then up to 99 letters, digits, _, . or -"
_CONVERTER = catalog_converter()


def read_kinds(document: Document, retry: Retry, faults: list[Fault]) -> Iterator[WorkKind]:
    """Gives the kinds of the file that have no fault; adds the faults of all others to `faults`.

    A kind's retry policy is `retry` with the keys of `[kinds.NAME.retry]` replaced.
    """
    faults.extend(_stray_tables(document))
    for name in kind_tables(document):
        path = ("kinds", name)
        table = read_table(document, path, KindTable, _CONVERTER)
        override = _read_override(document, (*path, "retry"), retry)
        found = [*_faults_of_table(document, path, table), *override.faults]
        faults.extend(found)
        if not found:
            yield _kind(document.origin(path), name, table, evolve(retry, **override.values))


def kind_tables(document: Document) -> Mapping[str, object]:
    """Gives what the file holds under `[kinds]`, by kind."""
    kinds = document.data.get("kinds", {})
    return cast(dict[str, object], kinds) if isinstance(kinds, dict) else {}


def _stray_tables(document: Document) -> Iterator[Fault]:
    for name, found in document.data.items():
        if name != "kinds":
            yield unknown_key(document, (name,), ("kinds",))
        elif not isinstance(found, dict):
            unfit = Unfit("a table", "write [kinds.NAME] above the keys of each kind")
            yield misfit(document, (name,), sort_of(found), unfit)


def _faults_of_table(document: Document, path: tuple[str, str], table: Reading) -> Iterator[Fault]:
    name = path[-1]
    if not _NAME.fullmatch(name):
        yield misfit(document, path, toml_text(name), Unfit(_NAME_WANTED))
    raw = document.at(path)
    if not isinstance(raw, dict):
        yield from table.faults
        return
    keys = cast(dict[str, object], raw)
    if keys.keys().isdisjoint({"duration_ms", "outcome"}):
        yield misfit(document, path, "no behaviour", Unfit("duration_ms or outcome"))
    split = {key_text((*path, key)): f"{name}.{key}" for key in keys if isinstance(keys[key], dict)}
    for fault in table.faults:
        meant = split.get(fault.key) if fault.found == "unknown key" else None
        hint = f'a kind named {meant} is written [kinds."{meant}"]' if meant else fault.hint
        yield evolve(fault, hint=hint)


def _read_override(document: Document, path: tuple[str, str, str], retry: Retry) -> Reading:
    if not isinstance(_below(document.at(path[:2]), path[2]), dict):
        return Reading({}, ())
    reading = read_table(document, path, Retry, _CONVERTER)
    policy = evolve(retry, **reading.values)
    if policy.base_seconds <= policy.max_seconds:
        return reading
    blamed = "base_seconds" if "base_seconds" in reading.values else "max_seconds"
    base, most = plain_number(policy.base_seconds), plain_number(policy.max_seconds)
    found = str(base if blamed == "base_seconds" else most)
    unfit = Unfit(f"base_seconds <= max_seconds (here {base} and {most})")
    return evolve(
        reading, faults=(*reading.faults, misfit(document, (*path, blamed), found, unfit))
    )


def _below(table: object, key: str) -> object:
    return cast(dict[str, object], table).get(key) if isinstance(table, dict) else None


def _kind(source: str, name: str, reading: Reading, retry: RetryPolicy) -> WorkKind:
    table = KindTable(**reading.values)
    return WorkKind(
        name=name,
        behaviour=Deterministic(
            duration_ms_min=table.duration_ms.low_ms,
            duration_ms_max=table.duration_ms.high_ms,
            outcome=table.outcome,
            fail_first=table.fail_first,
        ),
        retryable=table.retryable,
        retry=retry,
        time_limit_seconds=table.time_limit_seconds,
        priority=table.priority,
        on_lease_lost=table.on_lease_lost,
        source=source,
    )
