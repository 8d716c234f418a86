"""Which behaviour a kind has, and which keys may stand beside it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import attrs

from musterd.catalog.inner import Inner
from musterd.catalog.kinds import Behaviour, Command, Deterministic, HttpCall, Python
from musterd.catalog.tables import BEHAVIOUR_KEYS, HttpTable, KindTable
from musterd.config.document import Document
from musterd.config.faults import Fault, Unfit
from musterd.config.strict import misfit
from musterd.config.toml_text import key_text

_REAL = ("python", "command", "http")
_DETERMINISTIC = ("duration_ms", "outcome")  # either makes a kind one


def behaviour_faults(
    document: Document, path: tuple[str, str], keys: Mapping[str, object]
) -> Iterator[Fault]:
    """Gives the faults of a kind that does nothing, two things, or one with another's keys."""
    first, *others = [key for key in keys if key in _REAL] or [""]
    if not first and keys.keys().isdisjoint(_DETERMINISTIC):
        yield misfit(document, path, "no behaviour", Unfit("python, command, http or duration_ms"))
        return
    for key in others:
        hint = f"a kind has one: {first} is at {document.origin((*path, first))}"
        yield _fault(document, (*path, key), "a second behaviour", hint)
    chosen = (first, *others) if first else ("deterministic",)
    for key in keys:
        owner = _OWNERS.get(key, chosen[0])
        if owner not in chosen:
            found = f"does not go with {first}" if first else "goes with no deterministic kind"
            yield _fault(document, (*path, key), found, f"it is a key of {owner} kinds")


def keys_beside(keys: Mapping[str, object]) -> tuple[str, ...]:
    """Gives the keys that a kind may have which has these."""
    chosen = {key for key in keys if key in _REAL}
    if not chosen:
        chosen = {"deterministic"} if keys.keys() & set(_DETERMINISTIC) else {*_REAL}
    known = attrs.fields_dict(KindTable)
    return tuple(key for key in known if _OWNERS.get(key, key) in chosen or key in _COMMON)


def make_behaviour(table: KindTable, inner: Inner, search_path: tuple[Path, ...]) -> Behaviour:
    """Makes the behaviour of a kind that has no fault."""
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


def _fault(document: Document, path: tuple[str, ...], found: str, hint: str) -> Fault:
    return Fault(document.source, document.line(path), key_text(path), found, hint=hint)


_OWNERS = {key: owner for owner, owned in BEHAVIOUR_KEYS.items() for key in owned}
_COMMON = {*attrs.fields_dict(KindTable)} - _OWNERS.keys() - {*_REAL}
