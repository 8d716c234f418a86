"""Findings, checks, and the setup that is examined: values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.settings import Settings

Level = Literal["ok", "warn", "fail"]
Stop = Literal["unavailable", "misconfigured"]  # why nothing more can be asked of a store


@attrs.frozen
class Finding:
    """`wanted` and `advice` are empty if all is well."""

    name: str
    level: Level
    found: str
    wanted: str = ""
    advice: str = ""
    tenant: str = ""  # whose store it is about; "" = this machine, or all
    group: str = ""  # that of the check
    stop: Stop | None = None


@attrs.frozen
class Check:
    """`look` may raise or hang: the examination handles both."""

    name: str
    group: str
    look: Callable[[], Awaitable[Iterable[Finding]]]
    tenant: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, "ok", found)


def warn(name: str, found: str, wanted: str, advice: str) -> Finding:
    return Finding(name, "warn", found, wanted, advice)


def fail(name: str, found: str, wanted: str, advice: str) -> Finding:
    return Finding(name, "fail", found, wanted, advice)


class ProgramResult(NamedTuple):
    code: int
    out: str


@attrs.frozen
class Setup:
    """What is examined. `settings` are the node's own; `tenants` are those to check. `kinds` checks
    each kind, `hooks` returns the broken functions of the settings; both block. `origins` says
    where settings come from. `run` runs a program.
    """

    settings: Settings
    tenants: Sequence[str]
    origins: Mapping[str, str]
    environ: Mapping[str, str] = attrs.field(repr=False)
    kinds: Callable[[], Catalog]
    hooks: Callable[[], Mapping[str, str]]
    wall_clock: Callable[[], float]
    monotonic: Callable[[], float]
    run: Callable[[Sequence[str]], Awaitable[ProgramResult]]
    unit: str = "musterd.service"
    has_systemd: bool = False
    mounts: Path = Path("/proc/self/mountinfo")
