"""`musterd kinds`: the catalog, and which kinds and hooks are broken on this machine."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from types import FrameType
from typing import cast

import attrs
import click

from musterd.catalog.checking import Surroundings, broken_hooks, find_broken, surroundings_of
from musterd.catalog.kinds import (
    Catalog,
    Deterministic,
    Phase,
    Pipeline,
    WorkKind,
)
from musterd.catalog.load import SHIPPED_FILE
from musterd.config.secrets import MASKS
from musterd.config.settings import Settings
from musterd.console.command import CommandLine, Verbs
from musterd.console.output import Columns, Complaint, Exit, or_dash, say, table_of
from musterd.manager.log import event, event_of_list
from musterd.store.words import duration_text, one_line
from musterd.web.kind_words import behaviour_words, retry_words
from musterd.workers.tools import make_tools

NONE = "there are no kinds: name your catalog files in [catalog] paths"


@click.group(cls=Verbs, invoke_without_command=True)
@click.option(
    "--check", is_flag=True, help="Check whether each kind can run here; exit 78 if one cannot."
)
@click.pass_context
def kinds(context: click.Context, check: bool) -> None:
    """List the kinds of work."""
    if context.invoked_subcommand is not None:
        return
    cli: CommandLine = context.obj
    settings = cli.settings()
    catalog = cli.catalog(settings)
    if check:
        catalog = check_kinds(catalog, settings)
    found = [catalog[name] for name in sorted(catalog)]
    objects = (_object(kind, check) for kind in found)
    cli.show(objects, lambda: table_of(found, CHECK_COLUMNS if check else COLUMNS, NONE))
    advice = "their jobs wait until they can; other kinds are not affected"
    if broken := [kind.name for kind in found if kind.broken]:
        raise Complaint(Exit.CONFIGURATION, f"can't run here: {', '.join(broken)}", advice)


@kinds.command()
def schema() -> None:
    """Print the JSON Schema of catalog files, for editors."""
    from musterd.catalog.schema import catalog_schema

    say(json.dumps(catalog_schema(), indent=1))


def _object(kind: WorkKind, checked: bool) -> dict[str, object]:
    whole = cast(dict[str, object], _plain(attrs.asdict(kind, recurse=False)))
    del whole["phase"]
    if not checked:
        del whole["broken"]  # not checked
    if isinstance(kind.behaviour, Pipeline):
        phases = [_phase_object(phase, checked) for phase in kind.behaviour.phases]
        whole["behaviour"] = {"phases": phases}
    return {**whole, "max_attempts": kind.retry.max_retries + 1}


def _phase_object(phase: Phase, checked: bool) -> dict[str, object]:
    part = phase.kind
    own = ("behaviour", "time_limit_seconds", "grace_seconds", "retryable", "retry_on", "source")
    found: dict[str, object] = {"name": phase.name, "input": phase.input}
    found |= {name: _plain(getattr(part, name)) for name in own}
    return {**found, "broken": part.broken} if checked else found


def _plain(value: object) -> object:
    """The value in JSON types; secret headers and passwords in URLs are masked."""
    if attrs.has(type(value)):
        return _plain(attrs.asdict(cast(attrs.AttrsInstance, value), recurse=False))
    if isinstance(value, Mapping):
        items = cast(Mapping[str, object], value).items()
        return {key: _plain(MASKS[key](each) if key in MASKS else each) for key, each in items}
    if isinstance(value, tuple):
        return [_plain(each) for each in cast(tuple[object, ...], value)]
    return str(value) if isinstance(value, Path) else value


COLUMNS: Columns[WorkKind] = {
    "kind": lambda kind: kind.name,
    "behaviour": behaviour_words,
    "retry of failures": retry_words,
    # As in the job object: where failures are not retried, lost leases use them.
    ">attempts": lambda kind: str(kind.retry.max_retries + 1),
    "limit": lambda kind: or_dash(kind.time_limit_seconds, duration_text),
    ">priority": lambda kind: str(kind.priority),
    "from": lambda kind: "shipped" if kind.source.startswith(f"{SHIPPED_FILE}:") else kind.source,
}
CHECK_COLUMNS: Columns[WorkKind] = {
    "kind": lambda kind: kind.name,
    "check": lambda kind: "broken" if kind.broken else "ok",
    "behaviour, or why it can't run here": lambda kind: one_line(
        kind.broken or behaviour_words(kind)
    ),
}


def check_kinds(catalog: Catalog, settings: Settings) -> Catalog:
    """The catalog with each kind's `broken` for this machine. Blocks while modules are imported."""
    return find_broken(catalog, _surroundings(settings))


def broken_hooks_of(settings: Settings) -> Mapping[str, str]:
    """Which functions of the settings are broken, and why, by key. Blocks like `check_kinds`."""
    return broken_hooks(settings, _surroundings(settings))


def _surroundings(settings: Settings) -> Surroundings:
    tools = make_tools(settings, time.monotonic, os.environ)
    return surroundings_of(settings, os.environ, tools.environment)


def log_broken_hooks(settings: Settings, log: logging.Logger) -> None:
    """Logs broken functions. Their calls wait until they are fixed."""
    for key, why in broken_hooks_of(settings).items():
        event(log, logging.WARNING, "hook broken", key=key, message=why)


def check_kinds_at_start(catalog: Catalog, settings: Settings, log: logging.Logger) -> Catalog:
    """Like `check_kinds`, but logs the broken ones. TERM or INT end the process with 0."""
    with _ended_by_signals():
        log_broken_hooks(settings, log)
        parts = [part for kind in catalog.values() for part in kind.parts]
        if not all(isinstance(part.behaviour, Deterministic) for part in parts):
            catalog = check_kinds(catalog, settings)  # it has what another machine may not have
    for kind in catalog.values():
        if kind.broken is not None:
            fields = {"kind": kind.name, "message": kind.broken}
            event_of_list(log, logging.WARNING, "kind broken", **fields)
    return catalog


@contextlib.contextmanager
def _ended_by_signals() -> Generator[None]:
    """Raises SystemExit instead of dying from the signal, so that children end first."""

    def end(_number: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
