"""The tables within `[scaling]`, and the settings that follow from them."""

from collections.abc import Callable
from typing import Any, Literal, cast

import attrs
from attrs import field, frozen

from musterd.config.cron import read_cron, read_zone
from musterd.config.validators import Between, text_like

PolicyName = Literal["demand", "depth", "latency"]
Mode = Literal["active", "shadow", "hold"]

_DAY = 86_400
WAIT_SECONDS = Between(0, 30 * _DAY)
HEADROOM = Between(0.1, 1)
PAUSE_SECONDS = Between(0, _DAY)
STEP = Between(0, 10_000)
SHARE_PERCENT = Between(0, 100)
FLOOR = Between(0, 10_000)
CEILING = Between(1, 10_000)
hours_name = text_like(
    "[A-Za-z0-9_.-]{1,50}",
    "1 to 50 letters, digits, `_`, `.`, `-`",
    "1 to 50 letters, digits, _, . and -",
)


def unless_given(check: Callable[..., None]) -> Any:
    """A key that has another's value unless it is given."""
    return field(default=None, validator=attrs.validators.optional(check))


def _cron_line(_owner: object, _key: "attrs.Attribute[Any]", text: str) -> None:
    read_cron(text, read_zone("UTC"))


def _zone_name(_owner: object, _key: "attrs.Attribute[Any]", name: str) -> None:
    read_zone(name)


@frozen
class Hours:
    """Other bounds of the crew, for so many minutes from each time of a cron line on."""

    name: str = field(validator=hours_name)
    from_: str = field(validator=_cron_line)
    for_minutes: float = field(validator=Between(1, 527_040))
    timezone: str = field(default="UTC", validator=_zone_name)
    default_count: int | None = unless_given(FLOOR)
    max_count: int | None = unless_given(CEILING)


@frozen
class Guard:
    """Where hiring stops, because machine or store are at their limits; None and 0 = nowhere."""

    min_free_memory_mb: int | None = unless_given(Between(0, 1_048_576 * 16))
    memory_pressure_percent: float | None = unless_given(SHARE_PERCENT)
    cpu_pressure_percent: float | None = unless_given(SHARE_PERCENT)
    claim_p99_ms: int | None = unless_given(Between(0, 60_000))


NO_GUARD = Guard()


@frozen
class Candidate:
    """Another way to scale, decided on beside the one in force; None = as that."""

    policy: PolicyName | None = None
    max_wait_seconds: float | None = unless_given(WAIT_SECONDS)
    headroom: float | None = unless_given(HEADROOM)
    up_cooldown_seconds: float | None = unless_given(PAUSE_SECONDS)
    down_cooldown_seconds: float | None = unless_given(PAUSE_SECONDS)
    stabilization_seconds: float | None = unless_given(PAUSE_SECONDS)
    up_step: int | None = unless_given(STEP)
    down_step: int | None = unless_given(STEP)
    tolerance_percent: float | None = unless_given(SHARE_PERCENT)
    hours: tuple[Hours, ...] | None = None
    guard: Guard | None = field(default=None, metadata={"is_table": True})
    default_count: int | None = unless_given(FLOOR)
    max_count: int | None = unless_given(CEILING)


NO_CANDIDATE = Candidate()
COUNTS = ("default_count", "max_count")


def given(table: attrs.AttrsInstance) -> dict[str, Any]:
    """The keys that are set."""
    values = attrs.asdict(table, recurse=False)
    return {name: value for name, value in values.items() if value is not None}


def merged(before: object, said: attrs.AttrsInstance) -> object:
    """A table merged over that of an earlier layer."""
    both = given(before) if type(before) is type(said) else {}
    return cast(Callable[..., object], type(said))(**(both | given(said)))
