"""The tables of a catalog file as they may be written, before they become kinds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

import attrs
from attrs import field, frozen
from cattrs import Converter

from musterd.catalog import shapes
from musterd.catalog.kinds import Isolation, OnLeaseLost, Outcome, PhaseInput
from musterd.catalog.shapes import (
    Argv,
    DurationRange,
    FunctionName,
    HttpKeys,
    Overrides,
    PhaseTables,
    Umask,
)
from musterd.config.job_options import PRIORITY_MAX, PRIORITY_MIN
from musterd.config.secrets import mask_all
from musterd.config.strict import strict_converter
from musterd.config.validators import Between, webhook_url

_DAY = 86_400
_MIB_MAX = 1_048_576  # one tebibyte


@frozen
class DoingTable:
    """The keys that say what is done: those of a kind, and of each of its phases. What holds where
    one is left out; None = nothing.
    """

    duration_ms: DurationRange = field(factory=lambda: DurationRange(0, 0))
    outcome: Outcome = "success"
    fail_first: int = field(default=0, validator=Between(0, 10_000))
    time_limit_seconds: float | None = field(
        default=None, validator=attrs.validators.optional(Between(0.001, 30 * _DAY))
    )
    grace_seconds: float | None = field(
        default=None, validator=attrs.validators.optional(Between(0, 3_600))
    )
    python: FunctionName | None = None
    isolation: Isolation = "process"
    command: Argv | None = None
    cwd: Path | None = None
    umask: Umask = field(factory=lambda: Umask(0o077))
    environment: tuple[str, ...] = field(
        default=(), validator=shapes.variable_names, metadata={"mask": mask_all}
    )
    rlimits: Overrides = field(factory=lambda: Overrides({}))
    retry_on_exit: tuple[int, ...] = field(default=(), validator=shapes.exit_statuses)
    http: HttpKeys | None = None
    retention: Overrides = field(factory=lambda: Overrides({}))


@frozen
class KindTable(DoingTable):
    """The keys of `[kinds.NAME]`."""

    retryable: bool = False
    retry_on: tuple[str, ...] = field(default=(), validator=shapes.error_types)
    retry: Overrides = field(factory=lambda: Overrides({}))
    priority: int = field(default=0, validator=Between(PRIORITY_MIN, PRIORITY_MAX))
    on_lease_lost: OnLeaseLost = "requeue"
    budgets: Overrides = field(factory=lambda: Overrides({}))
    max_running: int | None = field(
        default=None, validator=attrs.validators.optional(Between(1, 1_000_000))
    )
    webhook: str = field(default="", validator=webhook_url)
    phases: PhaseTables | None = None


@frozen
class PhaseTable(DoingTable):
    """The keys of `[[kinds.NAME.phases]]`; None = as its kind has it."""

    name: str = field(default="", validator=shapes.phase_name)
    retryable: bool | None = None
    retry_on: tuple[str, ...] | None = field(
        default=None, validator=attrs.validators.optional(shapes.error_types)
    )
    input: PhaseInput = "payload"


# Which behaviour each key goes with; a key that is not here goes with every one.
BEHAVIOUR_KEYS: Mapping[str, tuple[str, ...]] = {
    "deterministic": ("duration_ms", "outcome", "fail_first"),
    "python": ("isolation",),
    "command": ("cwd", "umask", "environment", "rlimits", "retry_on_exit", "input"),
    "http": ("input",),
}
# Tables within a kind's own; each is read by a class of its own (`budgets` has any keys).
INNER_TABLES = ("retry", "budgets", "rlimits", "http", "retention")


@frozen
class HttpTable:
    """The keys of `http = {...}`."""

    url: str = field(default="", validator=shapes.call_url)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: Overrides = field(factory=lambda: Overrides({}))
    header_files: Overrides = field(factory=lambda: Overrides({}))


def _limit(high: int, low: int = 1) -> int | None:
    between = attrs.validators.optional(Between(low, high))
    return cast("int | None", field(default=None, validator=between))


@frozen
class RlimitTable:
    """The keys of `rlimits = {...}`: what a program may use, as setrlimit(2) has it."""

    as_mb: int | None = _limit(_MIB_MAX)
    core_mb: int | None = _limit(_MIB_MAX, low=0)
    cpu_seconds: int | None = _limit(30 * _DAY)
    data_mb: int | None = _limit(_MIB_MAX)
    fsize_mb: int | None = _limit(_MIB_MAX, low=0)
    nofile: int | None = _limit(_MIB_MAX, low=8)
    nproc: int | None = _limit(_MIB_MAX)
    stack_mb: int | None = _limit(_MIB_MAX)


def catalog_converter() -> Converter:
    """Gives the strict converter, taught the shapes that only a catalog has."""
    converter = strict_converter()
    converter.register_structure_hook(DurationRange, shapes.duration)
    converter.register_structure_hook(Overrides, shapes.overrides)
    converter.register_structure_hook(HttpKeys, shapes.http_keys)
    converter.register_structure_hook(FunctionName, shapes.function_name)
    converter.register_structure_hook(Argv, shapes.argv)
    converter.register_structure_hook(Umask, shapes.umask)
    converter.register_structure_hook(PhaseTables, shapes.phase_tables)
    return converter
