"""The catalog from its files; all faults of all files are found in one run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen

from musterd.catalog.behaviour import (
    Inner,
    faults_of_keys,
    make_behaviour,
    missing_key,
    read_inner,
    second_ones,
    table_at,
)
from musterd.catalog.kinds import (
    Catalog,
    Command,
    KindDefaults,
    Phase,
    Pipeline,
    Python,
    WorkKind,
)
from musterd.catalog.modules import documents_of_modules
from musterd.catalog.tables import INNER_TABLES, KindTable, PhaseTable
from musterd.config.document import Document, KeyPath, read_document
from musterd.config.faults import ConfigError, Fault, Unfit, did_you_mean
from musterd.config.load import module_folders
from musterd.config.settings import Retry, Settings
from musterd.config.strict import Reading, misfit, read_table, unknown_key
from musterd.config.toml_text import key_text, short_text, sort_of, toml_text
from musterd.config.webhook_urls import UrlPolicy, check_allowed

SHIPPED_FILE = Path(__file__).with_name("default.toml")


def catalog_of(settings: Settings, environ: Mapping[str, str]) -> Catalog:
    """Reads the catalog of these settings. Raises ConfigError with all faults."""
    grace_seconds = settings.executor.grace_seconds
    python_path = module_folders(settings.catalog, environ)
    policy, on_lease_lost = settings.webhooks.policy, settings.leases.on_lease_lost
    defaults = KindDefaults(settings.retry, grace_seconds, python_path, policy, on_lease_lost)
    shipped, faults = settings.catalog.shipped, list[Fault]()
    modules = documents_of_modules(settings, environ, faults)
    catalog = load_catalog(
        settings.catalog.paths, defaults, shipped=shipped, more=(modules, faults)
    )
    user = settings.executor.user
    return Catalog(_as_user(user, kind) for kind in catalog.values()) if user else catalog


def _as_user(user: str, kind: WorkKind) -> WorkKind:
    """The kind whose processes run as this user, where it names none itself."""
    match kind.behaviour:
        case Pipeline(phases):
            own = tuple(evolve(phase, kind=_as_user(user, phase.kind)) for phase in phases)
            return evolve(kind, behaviour=Pipeline(own))
        case Command(user="") | Python(isolation="process", user="") as behaviour:
            return evolve(kind, behaviour=evolve(behaviour, user=user))
        case _:
            return kind


def load_catalog(
    paths: Iterable[Path],
    defaults: KindDefaults | Retry,
    *,
    shipped: bool = True,
    more: tuple[Iterable[Document], Iterable[Fault]] = ((), ()),
) -> Catalog:
    """Reads the `shipped` catalog and the user's files, whose kinds replace shipped ones. A path is
    a file, or a folder of `*.toml`, read in order of names; `more` are what was read elsewhere, and
    its faults. Raises ConfigError with all faults; a kind given twice by the user is one.
    """
    if isinstance(defaults, Retry):
        defaults = KindDefaults(defaults)
    faults = list(more[1])
    users = [*_documents(paths, faults), *more[0]]
    documents = [read_document(SHIPPED_FILE), *users] if shipped else users
    kinds = [kind for each in documents for kind in read_kinds(each, defaults, faults)]
    named = ((each, name, ("kinds", name)) for each in users for name in kind_tables(each))
    faults.extend(second_ones(named, "a second kind of this name"))
    if faults:
        raise ConfigError(faults)
    return Catalog(kinds)


def _documents(paths: Iterable[Path], faults: list[Fault]) -> Iterator[Document]:
    for path in paths:
        for file in _files(path, faults):
            try:
                yield read_document(file)
            except ConfigError as error:
                faults.extend(error.faults)


def _files(path: Path, faults: list[Fault]) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        found = sorted(each for each in path.iterdir() if each.suffix == ".toml")
    except OSError as error:
        faults.append(Fault(str(path), found=f"cannot be read: {error.strerror}"))
        return []
    return [file for file in found if not file.name.startswith(".")]  # editors leave such


NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,99}")
_NAME_WANTED = "a letter, then up to 99 letters, digits, _, . or -"


def read_kinds(
    document: Document, defaults: KindDefaults, faults: list[Fault]
) -> Iterator[WorkKind]:
    """The valid kinds of the file; appends the faults of all others to `faults`. The keys of
    `[kinds.NAME.retry]` replace those of the default policy.
    """
    faults.extend(_stray_tables(document))
    for name in kind_tables(document):
        path = ("kinds", name)
        table = read_table(document, path, KindTable)
        inner = read_inner(document, path, defaults.retry)
        phases = read_phases(document, path, table)
        found = [*_faults_of_table(document, path, table), *inner.faults, *phases.faults]
        found += _webhook_faults(document, path, table, defaults.webhooks)
        found += _idle_budgets(document, path, phases)
        faults.extend(found)
        if not found:
            yield _kind(document, KindTable(**table.values), inner, phases, defaults)


def kind_tables(document: Document) -> Mapping[str, object]:
    """The contents of `[kinds]`, by kind."""
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
    if not NAME.fullmatch(name):
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


def _idle_budgets(document: Document, path: tuple[str, str], phases: PhasesRead) -> Iterator[Fault]:
    """Deterministic phases spend nothing, so a budget of theirs would bound nothing."""
    budgets = (table_at(document, path) or {}).get("budgets")
    can_spend = any(values.keys() & {"python", "command", "http"} for values, _ in phases.values)
    if budgets is not None and phases.values and not can_spend:
        unfit = Unfit("a phase that can spend", "deterministic phases spend nothing")
        yield misfit(document, (*path, "budgets"), short_text(budgets), unfit)


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
        on_lease_lost=table.on_lease_lost or defaults.on_lease_lost,
        source=document.origin(("kinds", name)),
        grace_seconds=defaults.grace_seconds if grace_seconds is None else grace_seconds,
        retry_on=table.retry_on,
        budgets=inner.budgets,
        max_running=table.max_running,
        max_wait_seconds=table.max_wait_seconds,
        webhook=table.webhook or None,
        retention=inner.retention,
    )
    return make_pipeline(document, kind, phases, search_path) if has_phases else kind


@frozen
class PhasesRead:
    """The phases of the kind at `path`, in order, and their faults."""

    path: KeyPath
    values: tuple[tuple[Mapping[str, Any], Inner], ...]
    faults: tuple[Fault, ...]


def read_phases(document: Document, path: KeyPath, table: Reading) -> PhasesRead:
    places = [(*path, "phases", number) for number in range(table.values.get("phases") or 0)]
    tables = [read_table(document, place, PhaseTable) for place in places]
    inners = [read_inner(document, place, None) for place in places]
    faults: list[Fault] = []
    for place, one, inner in zip(places, tables, inners, strict=True):
        faults += missing_key(document, place, "name", "the name of the phase")
        faults += [*faults_of_keys(document, place, PhaseTable, one.faults), *inner.faults]
    names = ((table_at(document, place) or {}).get("name") for place in places)
    named = (
        (document, name, (*place, "name"))
        for place, name in zip(places, names, strict=True)
        if isinstance(name, str)
    )
    faults += second_ones(named, "a second phase of this name")
    faults += _stray_delays(document, places)
    values = [one.values for one in tables]
    return PhasesRead(path, tuple(zip(values, inners, strict=True)), tuple(faults))


def _stray_delays(document: Document, places: Sequence[KeyPath]) -> Iterator[Fault]:
    """Delays from the result of a phase that has none by then."""
    before: list[str] = []
    for place in places:
        table = table_at(document, place) or {}
        given = table.get("delay_from")
        name = given.partition("/")[0] if isinstance(given, str) else ""
        if name and name not in before:
            unfit = Unfit("a phase that comes before this one", did_you_mean(name, before))
            yield misfit(document, (*place, "delay_from"), toml_text(given), unfit)
        before.append(str(table.get("name")))


def make_pipeline(
    document: Document, kind: WorkKind, phases: PhasesRead, search_path: tuple[Path, ...]
) -> WorkKind:
    """The kind with its phases, which have no faults."""
    made: list[Phase] = []
    for number, (values, inner) in enumerate(phases.values):
        table = PhaseTable(**values)
        own = _own_rules(kind, table)
        own["source"] = document.origin((*phases.path, "phases", number))
        own["behaviour"] = make_behaviour(table, inner, search_path)
        made.append(Phase(table.name, evolve(kind, phase=table.name, **own), table.input))
    return evolve(kind, behaviour=Pipeline(tuple(made)))


def _own_rules(kind: WorkKind, table: PhaseTable) -> dict[str, Any]:
    """What a phase does not set, except the time limit, is inherited from its kind."""
    own: dict[str, Any] = {"time_limit_seconds": table.time_limit_seconds}
    for name in ("grace_seconds", "retryable", "retry_on"):
        value = getattr(table, name)
        own[name] = getattr(kind, name) if value is None else value
    return own
