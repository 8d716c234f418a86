"""The running daemon's configuration: asked for over HTTP, and compared with the files here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from musterd import __version__
from musterd.catalog.differences import kind_fingerprints
from musterd.catalog.kinds import Catalog
from musterd.config.changes import applies
from musterd.config.document import Document
from musterd.config.faults import ConfigError
from musterd.config.listen import UnixAddress, listen_address
from musterd.config.secrets import MASK
from musterd.config.settings import Settings, keys, sections
from musterd.config.show import in_effect
from musterd.config.strict import read_table
from musterd.config.tenants import TABLE as TENANTS
from musterd.config.toml_text import toml_text
from musterd.console.daemon_client import DaemonSilent, ask_daemon
from musterd.console.doctor.judges import Finding, ok, warn
from musterd.store.opening import engine_for
from musterd.store.words import cut, one_line, plural

NAME = "configuration"
WANTED = "the same in the daemon and here"
RELOAD = "musterd reload; a daemon's own --set and environment go before its files"
RESTART = "restart the daemon: a reload does not change this"
VALUE_WIDTH = 60
SHOWN_MAX = 20  # one reload mends them all
NOTHING = "not set"


@attrs.frozen
class Running:
    """What the daemon says is in effect; secrets are `***`."""

    node: str
    version: str
    store: str
    settings: Mapping[str, Any]
    kinds: Mapping[str, str]  # a fingerprint each


@attrs.frozen
class Silent:
    """Nobody told us. `is_alone`: because no daemon listens here, or is meant to."""

    why: str
    is_alone: bool


def what_runs(files: Settings, catalog: Catalog) -> tuple[Settings, list[Finding]]:
    """The settings in effect, or the files' if no daemon tells its own, and what is to be said of
    the difference. Blocks for a moment.
    """
    try:
        found, where = ask_running(files), engine_for(files).where
    except ConfigError:
        return files, []  # the check of secrets says that one cannot be read
    judged = judge_running(files, kind_fingerprints(catalog), where, found)
    settings = settings_in_effect(files, found) if isinstance(found, Running) else files
    return settings, list(judged)


def ask_running(settings: Settings) -> Running | Silent:
    """Blocks for a moment. Raises ConfigError if our own token cannot be read."""
    try:
        found = ask_daemon(settings, "/config")
    except DaemonSilent as error:
        address = listen_address(settings.http.listen)
        is_off = address is None or not (isinstance(address, UnixAddress) or address.port)
        return Silent(str(error), is_alone=error.is_gone or is_off)
    return Running(**{name: found.get(name, "") for name in attrs.fields_dict(Running)})


def settings_in_effect(files: Settings, running: Running) -> Settings:
    """The files' settings with the daemon's values. Secrets, tenants and what this version does
    not know stay as in the files.
    """
    tables: dict[str, Any] = {}
    for section, shape in sections().items():
        given = {
            name: value
            for name, value in running.settings.get(section, {}).items()
            if MASK not in json.dumps(value)
        }
        document = Document("the daemon", {section: given}, Path())
        values = read_table(document, (section,), shape).values
        tables[section] = attrs.evolve(getattr(files, section), **values)
    return attrs.evolve(files, **tables)


def judge_running(
    files: Settings, kinds: Mapping[str, str], where: str, running: Running | Silent
) -> Iterator[Finding]:
    """`kinds` are the fingerprints of those in the files; the files lead to the store `where`."""
    if isinstance(running, Silent):
        said = f"{running.why}; what follows is said of the files, not of what runs"
        advice = "make http.listen and http.token here those of the daemon"
        yield ok(NAME, said) if running.is_alone else warn(NAME, said, "an answer", advice)
        return
    found = [
        *_of_places(where, running),
        *_of_settings(_flat(in_effect(files)), _flat(running.settings)),
        *_of_kinds(kinds, running.kinds),
    ]
    yield from found[:SHOWN_MAX]
    if len(found) > SHOWN_MAX:
        said = f"{plural(len(found) - SHOWN_MAX, 'difference')} more"
        yield warn(NAME, said, WANTED, "run doctor again when those above are gone")
    if not found:
        yield ok(NAME, f"{running.node} runs with what the files say")


def _of_places(where: str, running: Running) -> Iterator[Finding]:
    if running.version != __version__:
        said = f"{running.node} is musterd {running.version}, this is {__version__}"
        yield warn(NAME, said, "one version", "restart the daemon, or use its own program")
    if running.store != where:
        said = f"the daemon's store is {running.store}, from here it would be {where}"
        advice = "run doctor as the daemon's user, with its configuration and environment"
        yield warn(NAME, said, "the same store", advice)


def _of_settings(here: Mapping[str, object], there: Mapping[str, object]) -> Iterator[Finding]:
    for key in {**here, **there}:
        ours, theirs = _text(here, key), _text(there, key)
        if ours != theirs:
            said = f"{key} is {theirs} in the daemon, {ours} in the files"
            yield warn(NAME, said, WANTED, RESTART if _needs_restart(key) else RELOAD)


def _of_kinds(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[Finding]:
    for name in sorted({**here, **there}):
        if here.get(name) == there.get(name):
            continue
        said = f"kind {name} is another in the daemon than in the files"
        if name not in there:
            said = f"kind {name} is in the files, and not in the daemon"
        elif name not in here:
            said = f"kind {name} is in the daemon, and not in the files"
        yield warn(NAME, said, WANTED, RELOAD)


def _needs_restart(key: str) -> bool:
    """A tenant's own `workers.max_count` is as its node's; its place changes while it runs."""
    first, *rest = key.split(".")
    own = ".".join(rest[1:]) if first == TENANTS else ".".join((first, *rest[:1]))
    return own in keys() and applies(own) == "restart"


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Values by dotted key."""
    found: dict[str, object] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(cast("Mapping[str, Any]", value), f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _text(values: Mapping[str, object], key: str) -> str:
    return cut(one_line(toml_text(values[key])), VALUE_WIDTH) if key in values else NOTHING
