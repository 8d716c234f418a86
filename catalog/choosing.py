"""Which behaviour a kind has, and which keys may stand beside it."""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import attrs
from attrs import evolve

from musterd.catalog.inner import Inner, table_at
from musterd.catalog.kinds import Behaviour, Command, Deterministic, HttpCall, Python
from musterd.catalog.tables import BEHAVIOUR_KEYS, DoingTable, HttpTable, KindTable, PhaseTable
from musterd.config.document import Document
from musterd.config.faults import Fault, Unfit
from musterd.config.strict import misfit
from musterd.config.toml_text import key_text

_REAL = ("python", "command", "http", "phases")
_DETERMINISTIC = ("duration_ms", "outcome")  # either makes a kind one
_WANTED = {
    "kind": "python, command, http, phases or duration_ms",
    "phase": "python, command, http or duration_ms",
}

KeyPath: TypeAlias = tuple[str | int, ...]
Keys: TypeAlias = Mapping[str, object]
Table: TypeAlias = type[KindTable] | type[PhaseTable]


def faults_of_keys(
    document: Document, path: KeyPath, shape: Table, found: Iterable[Fault]
) -> Iterator[Fault]:
    """Gives the faults of a kind or a phase that does nothing, two things, or one with another's
    keys; and those that were found in its table, with the hints that only a catalog can give.
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
            found = f"does not go with {first}" if first else f"goes with no deterministic {what}"
            hint = f"it is a key of {' and '.join(owners)} {what}s"
            if first == "phases":
                hint = "it is a key of each phase"
            yield _fault(document, (*path, key), found, hint)


def keys_beside(keys: Keys, shape: Table) -> tuple[str, ...]:
    """Gives the keys that a kind or a phase may have which has these."""
    real = _real_of(shape)
    chosen = {key for key in keys if key in real}
    if not chosen:
        chosen = {"deterministic"} if keys.keys() & set(_DETERMINISTIC) else set(real)
    return tuple(
        key
        for key in attrs.fields_dict(shape)
        if not chosen.isdisjoint(_owners(key)) or _common(key)
    )


def make_behaviour(table: DoingTable, inner: Inner, search_path: tuple[Path, ...]) -> Behaviour:
    """Makes the behaviour of a kind without phases, or of a phase, that has no fault."""
    if table.python is not None:
        name = table.python
        return Python(name.module, name.function, table.isolation, search_path)
    if table.command is not None:
        return Command(
            argv=table.command.words,
            cwd=table.cwd and Path(os.path.normpath(search_path[0] / table.cwd)),
            umask=table.umask.bits,
            environment=table.environment,
            rlimits=MappingProxyType(dict(inner.rlimits)),
            retry_on_exit=table.retry_on_exit,
        )
    if table.http is not None:
        return _http_call(HttpTable(**inner.http), inner)
    return Deterministic(
        duration_ms_min=table.duration_ms.low_ms,
        duration_ms_max=table.duration_ms.high_ms,
        outcome=table.outcome,
        fail_first=table.fail_first,
    )


def _http_call(table: HttpTable, inner: Inner) -> HttpCall:
    return HttpCall(
        method=table.method,
        url=table.url,
        headers=MappingProxyType(dict(inner.headers)),
        header_files=MappingProxyType(dict(inner.header_files)),
    )


def _real_of(shape: Table) -> tuple[str, ...]:
    return tuple(key for key in _REAL if key in attrs.fields_dict(shape))


def _owners(key: str) -> tuple[str, ...]:
    return _OWNERS.get(key, (key,))


def _common(key: str) -> bool:
    return key not in _OWNERS and key not in _REAL


def _fault(document: Document, path: KeyPath, found: str, hint: str) -> Fault:
    return Fault(document.source, document.line(path), key_text(path), found, hint=hint)


_OWNERS = {
    key: tuple(owner for owner, owned in BEHAVIOUR_KEYS.items() if key in owned)
    for key in chain.from_iterable(BEHAVIOUR_KEYS.values())
}
