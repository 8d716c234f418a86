"""Whom the doctor looks at: what is configured, and this machine as far as it has to be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.settings import Settings


class Ran(NamedTuple):
    """A program that has ended."""

    code: int
    out: str


@attrs.frozen
class Patient:
    """`settings` are the node's own, `tenants` the names of those to look at. `kinds` looks at each
    kind as it is on this machine, `hooks` says which functions of the settings are broken; both
    block. `origins` say where each setting comes from. `run` runs a program.
    """

    settings: Settings
    tenants: Sequence[str]
    origins: Mapping[str, str]
    environ: Mapping[str, str] = attrs.field(repr=False)
    kinds: Callable[[], Catalog]
    hooks: Callable[[], Mapping[str, str]]
    wall_clock: Callable[[], float]
    monotonic: Callable[[], float]
    run: Callable[[Sequence[str]], Awaitable[Ran]]
    unit: str = "musterd.service"
    has_systemd: bool = False
    mounts: Path = Path("/proc/self/mountinfo")
