"""One catalog file's tables, made into kinds."""

import re
from collections.abc import Iterator, Mapping
from typing import cast

from attrs import evolve

from musterd.catalog.choosing import faults_of_keys, make_behaviour
from musterd.catalog.inner import Inner, read_inner, table_at
from musterd.catalog.kinds import KindDefaults, Pipeline, WorkKind
from musterd.catalog.phases import PhasesRead, make_pipeline, read_phases
from musterd.catalog.tables import INNER_TABLES, KindTable, catalog_converter
from musterd.config.document import Document
from musterd.config.faults import Fault, Unfit
from musterd.config.strict import Reading, misfit, read_table, unknown_key
from musterd.config.toml_text import key_text, sort_of, toml_text
from musterd.config.webhook_urls import UrlPolicy, check_allowed

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,99}")
_NAME_WANTED = "a letter, then up to 99 letters, digits, _, . or -"
_CONVERTER = catalog_converter()


def read_kinds(
    document: Document, defaults: KindDefaults, faults: list[Fault]
) -> Iterator[WorkKind]:
    """Gives the kinds of the file that have no fault; adds the faults of all others to `faults`.

    A kind's retry policy is that of `defaults` with the keys of `[kinds.NAME.retry]` replaced.
    """
    faults.extend(_stray_tables(document))
    for name in kind_tables(document):
        path = ("kinds", name)
        table = read_table(document, path, KindTable, _CONVERTER)
        inner = read_inner(document, path, defaults.retry, _CONVERTER)
        phases = read_phases(document, path, table, _CONVERTER)
        found = [*_faults_of_table(document, path, table), *inner.faults, *phases.faults]
        found += _webhook_faults(document, path, table, defaults.webhooks)
        faults.extend(found)
        if not found:
            yield _kind(document, KindTable(**table.values), inner, phases, defaults)


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
    keys = table_at(document, path) or {}
    inner = [key for key in keys if isinstance(keys[key], dict) and key not in INNER_TABLES]
    split = {key_text((*path, key)): f"{name}.{key}" for key in inner}
    for fault in faults_of_keys(document, path, KindTable, table.faults):
        meant = split.get(fault.key) if fault.found == "unknown key" else None
        hint = f'a kind named {meant} is written [kinds."{meant}"]'
        yield evolve(fault, hint=hint) if meant else fault


def _webhook_faults(
    document: Document, path: tuple[str, str], table: Reading, policy: UrlPolicy
) -> Iterator[Fault]:
    if url := table.values.get("webhook"):
        try:
            check_allowed(url, policy)
        except Unfit as unfit:
            yield misfit(document, (*path, "webhook"), toml_text(url), unfit)


def _kind(
    document: Document, table: KindTable, inner: Inner, phases: PhasesRead, defaults: KindDefaults
) -> WorkKind:
    search_path = (document.folder, *defaults.python_path)
    grace_seconds, name = table.grace_seconds, str(phases.path[1])
    has_phases = table.phases is not None
    kind = WorkKind(
        name=name,
        behaviour=Pipeline(()) if has_phases else make_behaviour(table, inner, search_path),
        retryable=table.retryable,
        retry=evolve(defaults.retry, **inner.retry),
        time_limit_seconds=table.time_limit_seconds,
        priority=table.priority,
        on_lease_lost=table.on_lease_lost,
        source=document.origin(("kinds", name)),
        grace_seconds=defaults.grace_seconds if grace_seconds is None else grace_seconds,
        retry_on=table.retry_on,
        budgets=inner.budgets,
        max_running=table.max_running,
        webhook=table.webhook or None,
        retention=inner.retention,
    )
    return make_pipeline(document, kind, phases, search_path) if has_phases else kind
