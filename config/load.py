"""The settings from all their layers, with all faults of all layers; and the store's URL."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast, get_origin

import attrs
import tomli
from attrs import AttrsInstance, evolve, frozen

from musterd.config import schedules, tenants
from musterd.config.constraints import CONSTRAINTS, Constraint
from musterd.config.credentials import find_credential, read_secret
from musterd.config.document import Document, read_document
from musterd.config.faults import (
    GUESS,
    UNKNOWN_TABLE,
    ConfigError,
    ConstraintFault,
    Fault,
    Unfit,
    did_you_mean,
)
from musterd.config.outside import HttpToken, WebhookReceiver
from musterd.config.scaling import merged
from musterd.config.schedules import Schedule
from musterd.config.secrets import mask_url
from musterd.config.settings import CatalogSettings, Settings, keys, sections
from musterd.config.strict import Key, describe, read_table
from musterd.config.tenant_names import DEFAULT_TENANT, beside
from musterd.config.toml_text import key_text, plain, short_text
from musterd.config.validators import STORE_SCHEMES, check_url

SHIPPED_FILE = Path(__file__).with_name("default.toml")
SYSTEM_FILE = Path("/etc/musterd/musterd.toml")

_NAMED = {each.name: each for each in (tenants.TABLES, schedules.TABLES)}
_FILE_KEYS = ("store.url_file", "http.token_file", "webhooks.secret_file")
_FOLDER_KEYS = ("catalog.paths", "catalog.python_path")


@frozen
class Loaded:
    """The settings, and for each key (`section.name`) the layer of its value."""

    settings: Settings
    origins: Mapping[str, str]


class UnsoundSettings(ConfigError):
    """Raised by `load`. `best` holds the sound values; for the others, those of the layer below."""

    def __init__(self, faults: Iterable[Fault], best: Settings) -> None:
        self.best = best
        super().__init__(faults)


def load(
    config_file: Path | None,
    environ: Mapping[str, str],
    sets: Sequence[str],
    system_file: Path = SYSTEM_FILE,
) -> Loaded:
    """Reads the layers; later ones win. Raises UnsoundSettings with all faults. `config_file`,
    which must exist, replaces `system_file`, which may be absent.
    """
    merged = _Merged()
    for layer in _layers(config_file or system_file, config_file is not None, environ, sets):
        if isinstance(layer, Fault):
            merged.faults.append(layer)
        else:
            merged.add(layer)
    merged.make_paths_absolute(environ)
    settings = merged.settings()
    faults = [*merged.faults, *merged.broken_constraints(settings), *merged.missing_folders()]
    if faults:
        raise UnsoundSettings(faults, settings)
    return Loaded(settings, merged.origins())


def _layers(
    file: Path, is_required: bool, environ: Mapping[str, str], sets: Sequence[str]
) -> Iterator[Document | Fault]:
    yield evolve(read_document(SHIPPED_FILE), source="default", lines={})
    if is_required or os.path.lexists(file):
        try:
            yield read_document(file)
        except ConfigError as error:
            yield from error.faults
    yield from from_environment(environ, Path.cwd())
    yield from from_arguments(sets, Path.cwd())


class _Merged:
    """The values of the layers so far, each with the index of its document."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._values: dict[str, object] = {}
        self._givers: dict[str, int] = {}
        self._documents: list[Document] = []
        self._names: dict[str, list[str]] = {table: [] for table in _NAMED}

    def add(self, document: Document) -> None:
        self._documents.append(document)
        shapes = sections()
        for section in document.data:
            if section in _NAMED:
                self._add_named(document, section)
                continue
            if section not in shapes:
                self.faults.append(_unknown_section(document, section))
                continue
            reading = read_table(document, (section,), shapes[section])
            self.faults.extend(_with_better_hint(fault) for fault in reading.faults)
            for name, value in reading.values.items():
                key = f"{section}.{name}"
                is_table = attrs.has(cast("type[object]", type(value)))
                self._values[key] = merged(self._values.get(key), value) if is_table else value
                self._givers[f"{section}.{name}"] = len(self._documents) - 1

    def _add_named(self, document: Document, table: str) -> None:
        names, reading = _NAMED[table].read(document)
        self.faults.extend(reading.faults)
        self._values.update(reading.values)
        giver = len(self._documents) - 1
        self._givers.update(dict.fromkeys(reading.values, giver))
        for name in names:
            self._givers.setdefault(f"{table}.{name}", giver)
            # The default tenant is there anyway; a schedule of that name is one like any other.
            if name not in self._names[table] and (table, name) != (tenants.TABLE, DEFAULT_TENANT):
                self._names[table].append(name)

    def make_paths_absolute(self, environ: Mapping[str, str]) -> None:
        for key in _FOLDER_KEYS:
            paths = cast(tuple[Path, ...], self._values[key])
            self._values[key] = tuple(_absolute(self._giver(key).folder, path) for path in paths)
        whose = f"{tenants.TABLE}."
        of_tenants = [k for k in self._values if k.startswith(whose) and k.endswith(".url_file")]
        for key in (*_FILE_KEYS, *of_tenants):
            self._values[key] = self._file(key, cast(str, self._values[key]), environ)
        tokens = cast(tuple[HttpToken, ...], self._values["http.tokens"])
        self._values["http.tokens"] = tuple(
            evolve(token, token_file=self._file("http.tokens", token.token_file, environ))
            for token in tokens
        )
        receivers = cast(tuple[WebhookReceiver, ...], self._values["webhooks.receivers"])
        self._values["webhooks.receivers"] = tuple(
            evolve(one, secret_file=self._file("webhooks.receivers", one.secret_file, environ))
            for one in receivers
        )
        python = cast(str, self._values["catalog.python"])
        if "/" in python:  # else a name for PATH
            folder = self._giver("catalog.python").folder
            self._values["catalog.python"] = str(_absolute(folder, Path(python)))

    def settings(self) -> Settings:
        """The settings of the valid values; for the others, those of the layer below."""
        tables = {
            section: cast(Callable[..., Any], shape)(**self._table(section, shape))
            for section, shape in sections().items()
        }
        settings = Settings(**tables, tenants={}, schedules={}, tenant=DEFAULT_TENANT)
        found = tenants.resolved(self._names[tenants.TABLE], self._values, settings)
        return evolve(
            settings,
            tenants={tenant.name: tenant for tenant in found},
            schedules={one.name: one for one in self._resolved() if isinstance(one, Schedule)},
        )

    def _resolved(self) -> Iterator[Schedule | ConstraintFault]:
        homes = (DEFAULT_TENANT, *self._names[tenants.TABLE])
        names = self._names[schedules.TABLE]
        return schedules.resolved(names, self._values, homes, self.origins())

    def broken_constraints(self, settings: Settings) -> Iterator[Fault]:
        """A fault for each broken constraint, unless one of its keys is at fault already."""
        at_fault = {".".join(fault.key.split(".")[:2]) for fault in self.faults}
        for constraint in CONSTRAINTS:
            if constraint.defaults_give_way and any(
                not self._givers[key] for key in constraint.keys
            ):
                continue
            if at_fault.isdisjoint(constraint.keys) and not constraint.holds(settings):
                yield self._broken(constraint, settings)
        unsound = (one for one in self._resolved() if isinstance(one, ConstraintFault))
        for broken in (*tenants.broken_constraints(settings), *unsound):
            # Keys that nobody set are the fault of another constraint.
            key = next((key for key in broken.keys if key in self._givers), None)
            if key is not None and key not in at_fault:
                fault = self._fault(key, broken.found)
                yield evolve(fault, wanted=broken.wanted, hint=broken.hint)

    def missing_folders(self) -> Iterator[Fault]:
        for key in _FOLDER_KEYS:
            for path in cast(tuple[Path, ...], self._values[key]):
                if why := _why_unreadable(path):
                    yield self._fault(key, f"{path} cannot be read: {why}")

    def origins(self) -> Mapping[str, str]:
        named = [f"{table}.{name}" for table, names in self._names.items() for name in names]
        within = [key for key in self._values if key.partition(".")[0] in _NAMED]
        known = [*keys(), *named, *within]
        return {key: self._giver(key).origin(_path(key)) for key in known}

    def _file(self, key: str, name: str, environ: Mapping[str, str]) -> str:
        """The file's absolute path, unless it is a credential's name, or empty."""
        if not name or find_credential(name, environ) is not None:
            return name
        return str(_absolute(self._giver(key).folder, Path(name)))

    def _table(self, section: str, shape: type[AttrsInstance]) -> dict[str, object]:
        return {name: self._values[f"{section}.{name}"] for name in attrs.fields_dict(shape)}

    def _broken(self, constraint: Constraint, settings: Settings) -> Fault:
        """Blames the key that the latest layer has set: it is the one to change."""
        blamed = max(constraint.keys, key=lambda key: self._givers[key])
        others = [f"{key} is {self._shown(key)}" for key in constraint.keys if key != blamed]
        wanted = f"{constraint.wanted} ({constraint.detail(settings) or '; '.join(others)})"
        return evolve(self._fault(blamed, self._shown(blamed)), wanted=wanted, hint=constraint.hint)

    def _fault(self, key: str, found: str) -> Fault:
        giver = self._giver(key)
        return Fault(giver.source, giver.line(_path(key)), key, found)

    def _shown(self, key: str) -> str:
        return describe(plain(self._values[key]), keys()[key])

    def _giver(self, key: str) -> Document:
        return self._documents[self._givers[key]]


def _path(key: str) -> tuple[str, ...]:
    return tuple(key.split("."))


def _absolute(folder: Path, path: Path) -> Path:
    return Path(os.path.normpath(folder / path))


def _why_unreadable(path: Path) -> str:
    try:
        path.stat()
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(path, os.R_OK) else os.strerror(errno.EACCES)


def _unknown_section(document: Document, section: str) -> Fault:
    found = UNKNOWN_TABLE if isinstance(document.data[section], dict) else "unknown key"
    hint = did_you_mean(section, (*sections(), *_NAMED)) or _same_name_elsewhere(section)
    hint = hint or f"known: {', '.join(sections())}"
    return Fault(document.source, document.line((section,)), key_text([section]), found, hint=hint)


def _with_better_hint(fault: Fault) -> Fault:
    """Points to another table with this key if its own has none like it."""
    if fault.found != "unknown key" or fault.hint.startswith(GUESS):
        return fault
    return evolve(fault, hint=_same_name_elsewhere(fault.key.rpartition(".")[2]) or fault.hint)


def _same_name_elsewhere(name: str) -> str:
    homes = [key for key in keys() if key.endswith(f".{name}")]
    return f"{GUESS}{homes[0]}?" if homes else ""


_PREFIX = "MUSTERD_"
_ATTRIBUTES = {tenants.TABLE: tenants.attribute_of, schedules.TABLE: schedules.attribute_of}
_ASSIGNMENT = re.compile(r"([^=.]+)\.([^=]+)=(.*)", re.DOTALL)


def from_environment(environ: Mapping[str, str], folder: Path) -> Iterator[Document | Fault]:
    """A document for every `MUSTERD_SECTION__KEY`, by name; no other MUSTERD_ variable is ours."""
    for name in sorted(environ):
        section, separator, key = name.removeprefix(_PREFIX).partition("__")
        if name.startswith(_PREFIX) and separator:
            path = _key_path(section.lower(), key.lower(), "__")
            yield _document(f"env {name}", path, environ[name], folder)


def stray_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that were probably meant for a key, each with the name that sets it: they have one
    underscore where two belong, and nearly the name of a key.
    """
    for name in sorted(environ):
        if name.startswith(_PREFIX) and "__" not in name:
            key = _meant(name.removeprefix(_PREFIX).lower())
            if key is not None:
                yield name, _PREFIX + key.upper().replace(".", "__")


def _meant(words: str) -> str | None:
    for table in sections():
        if words.startswith(f"{table}_"):
            word = words.removeprefix(f"{table}_")
            names = [key.partition(".")[2] for key in keys() if key.startswith(f"{table}.")]
            longer = [name for name in names if name.startswith(f"{word}_")]
            near = [word] if word in names else longer or get_close_matches(word, names, 1, 0.75)
            if near:
                return f"{table}.{near[0]}"
    return None


def from_arguments(sets: Sequence[str], folder: Path) -> Iterator[Document | Fault]:
    """A document for each `--set section.key=value`; a fault for anything else."""
    for text in sets:
        found = _ASSIGNMENT.fullmatch(text)
        if found is None:
            said = text.partition("=")[0]  # what follows may be a secret
            yield Fault("--set", found=said or "nothing", wanted="section.key=value")
        else:
            path = _key_path(found[1].strip(), found[2].strip(), ".")
            yield _document("--set", path, found[3], folder)


def _key_path(section: str, rest: str, separator: str) -> tuple[str, ...]:
    """Tenants and schedules are tables within tables, as are a few keys."""
    parts = rest.split(separator)
    inner = section in _ATTRIBUTES or _is_table((section, parts[0]))
    return (section, *parts) if inner else (section, rest)


def _is_table(path: Sequence[str]) -> bool:
    key = keys().get(".".join(path))
    return key is not None and bool(key.metadata.get("is_table"))


def _document(source: str, path: tuple[str, ...], text: str, folder: Path) -> Document | Fault:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return Fault(source, key=".".join(path), found="text that is not UTF-8")
    data: object = _value(text, path)
    for name in reversed(path):
        data = {name: data}
    return Document(source, cast(Mapping[str, object], data), folder)


def _value(text: str, path: tuple[str, ...]) -> object:
    """Reads `text` by its key's type; what cannot be read stays text and is refused later."""
    known = _ATTRIBUTES.get(path[0], _attribute)(path)
    if known is None:
        return text
    is_text = known.type is str or get_origin(known.type) is Literal
    value = _parsed(text.strip())
    return value if isinstance(value, str) or not is_text else text


def _attribute(path: Sequence[str]) -> "Key | None":
    """The key at `path`, which may be in a table within a table."""
    section, name, *within = path
    key = keys().get(f"{section}.{name}")
    if key is None or not within:
        return key
    return attrs.fields_dict(cast("type[attrs.AttrsInstance]", key.type)).get(within[0])


def _parsed(text: str) -> object:
    try:
        table = tomli.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text


def resolve_store_url(settings: Settings, environ: Mapping[str, str]) -> str:
    """The store's URL: `url`, else the content of `url_file`, else SQLite in the state directory. A
    tenant without a URL has its file beside the default tenant's. `PG*` variables choose nothing
    here; libpq reads them for PostgreSQL URLs. Raises ConfigError if the file holds no such URL.
    """
    url = _given_url(settings, environ)
    own = settings.tenants[settings.tenant].place
    if own.url or own.url_file or not url.startswith("sqlite:"):
        return url
    return beside(url, settings.tenant)


def _given_url(settings: Settings, environ: Mapping[str, str]) -> str:
    if settings.store.url:
        return settings.store.url
    if settings.store.url_file:
        return _url_from_file(settings.store.url_file, environ)
    return f"sqlite:///{state_directory(environ) / 'musterd.db'}"


def state_directory(environ: Mapping[str, str]) -> Path:
    """Where musterd keeps its state: systemd's folder, else the user's own."""
    given = environ.get("STATE_DIRECTORY", "").split(":")[0]  # systemd may name several
    if given:
        return Path(given).absolute()
    base = Path(environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the XDG rules say to ignore a relative one
        base = _home(environ) / ".local" / "state"
    return base / "musterd"


def module_folders(catalog: CatalogSettings, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where modules are looked up after their catalog's own folder. PYTHONPATH is meant for our own
    interpreter; children run isolated, and do not see it by themselves.
    """
    given = "" if catalog.python else environ.get("PYTHONPATH", "")
    own = (Path(each).absolute() for each in given.split(os.pathsep) if each)
    return (*catalog.python_path, *own)


def _url_from_file(name: str, environ: Mapping[str, str]) -> str:
    url = read_secret("store.url_file", name, environ)
    try:
        check_url(url, STORE_SCHEMES)
    except Unfit as unfit:
        found = short_text(mask_url(url))
        fault = Fault(name, None, "store.url_file", found, unfit.wanted, unfit.hint)
        raise ConfigError([fault]) from None
    return url


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or Path.home())
    except RuntimeError:
        hint = "set STATE_DIRECTORY or store.url"
        fault = Fault("environment", key="HOME", found="no home directory", hint=hint)
        raise ConfigError([fault]) from None
