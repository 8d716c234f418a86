"""Checks on this machine: which kinds and hooks are broken."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Generator, Mapping
from types import FrameType

from musterd.catalog.checking import Surroundings, broken_hooks, find_broken, surroundings_of
from musterd.catalog.kinds import Catalog, Deterministic
from musterd.config.settings import Settings
from musterd.manager.log import event, event_of_list
from musterd.workers.toolbox import make_tools


def check_kinds(catalog: Catalog, settings: Settings) -> Catalog:
    """The catalog with each kind's `broken` as it is on this machine. Blocks while modules are
    imported.
    """
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
    """Like `check_kinds`, but logs the broken kinds. TERM or INT end the process with 0: nothing
    has begun.
    """
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
