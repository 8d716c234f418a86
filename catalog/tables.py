"""The tables of a catalog file as they may be written, before they become kinds."""

from collections.abc import Mapping
from typing import cast

import attrs
from attrs import field, frozen
from cattrs import Converter

from musterd.catalog.kinds import OnLeaseLost, Outcome
from musterd.config.faults import Unfit
from musterd.config.strict import strict_converter
from musterd.config.validators import Between

_DURATION_MS_MAX = 86_400_000
_TIME_LIMIT_SECONDS_MAX = 30 * 86_400
_RANGE_ENDS = 2


@frozen
class DurationRange:
    """The bounds of a duration in whole milliseconds; a hash of the job chooses between them."""

    low_ms: int
    high_ms: int


@frozen
class Overrides:
    """A table whose keys replace those of another; read by the class of that other."""

    keys: Mapping[str, object]


@frozen
class KindTable:
    """The keys of `[kinds.NAME]`, each with what holds where it is left out."""

    duration_ms: DurationRange = DurationRange(0, 0)
    outcome: Outcome = "success"
    retryable: bool = False
    fail_first: int = field(default=0, validator=Between(0, 10_000))
    time_limit_seconds: float | None = field(
        default=None,
        validator=attrs.validators.optional(Between(0.001, _TIME_LIMIT_SECONDS_MAX)),
    )
    priority: int = field(default=0, validator=Between(-32_768, 32_767))
    on_lease_lost: OnLeaseLost = "requeue"
    retry: Overrides = field(factory=lambda: Overrides({}))


def catalog_converter() -> Converter:
    """Gives the strict converter, taught the two shapes that only a catalog has."""
    converter = strict_converter()
    converter.register_structure_hook(DurationRange, _duration)
    converter.register_structure_hook(Overrides, _overrides)
    return converter


def _duration(raw: object, _kind: object) -> DurationRange:
    ends = cast(list[object], raw) if isinstance(raw, list) else [raw, raw]
    whole = [end for end in ends if isinstance(end, int) and not isinstance(end, bool)]
    if len(ends) != _RANGE_ENDS or len(whole) != _RANGE_ENDS:
        raise Unfit("whole milliseconds, or a range [least, most]")
    low_ms, high_ms = whole
    if not 0 <= low_ms <= high_ms <= _DURATION_MS_MAX:
        raise Unfit(f"0 to {_DURATION_MS_MAX}, the least first")
    return DurationRange(low_ms, high_ms)


def _overrides(raw: object, _kind: object) -> Overrides:
    if isinstance(raw, dict):
        return Overrides(cast(dict[str, object], raw))
    raise Unfit("a table of retry keys", "write retry = { max_retries = 5 }, or a table of its own")
