"""The options of a job, each declared once: its name, values, default and effect.

`musterd enqueue`, `POST /jobs`, the client, the SQL functions and schedules are made from this
table, or a test compares them with it. Pure, and quick to import because `--help` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple, TypeAlias

Schema: TypeAlias = Mapping[str, object]  # JSON Schema

KIND_LENGTH_MAX = 100
NAME_LENGTH_MAX = 200  # of a key or a target
PRIORITY_MIN, PRIORITY_MAX = -32_768, 32_767
SECONDS_MAX = 3_153_600_000  # a hundred years
URL_LENGTH_MAX = 2000


class OptionType(NamedTuple):
    """Which values an option takes."""

    name: str  # in the documentation
    sql: str  # type of the argument of the SQL function
    schema: Schema
    wanted: str  # what a refusal asks for
    fits: Callable[[object], bool]
    is_shown: bool = True  # whether a refusal quotes the value
    bounds: tuple[int, int] | None = None  # of whole numbers


class JobOption(NamedTuple):
    """`flag` is that of `musterd enqueue`."""

    name: str
    type: OptionType
    about: str  # what it does, in one line
    default: str = ""  # in words; empty = nothing
    flag: str | None = ""  # of the command line; "" = --name, None = none
    metavar: str | None = None  # how `--help` writes the value
    excludes: str | None = None  # the option that cannot be given with it
    needs: str | None = None  # the option that must be given with it
    in_schedules: bool = False  # a key of [schedules.NAME] too

    @property
    def flags(self) -> tuple[str, ...]:
        return () if self.flag is None else (self.flag or f"--{self.name.replace('_', '-')}",)

    @property
    def help(self) -> str:
        return f"{self.about} Default: {self.default}." if self.default else self.about


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_seconds(value: object) -> bool:
    if not isinstance(value, int | float) or _is_flag(value):
        return False
    return 0 <= value <= SECONDS_MAX  # NaN and the infinities are not


def _is_anything(_value: object) -> bool:
    return True


def _is_moment(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def _is_scope(value: object) -> bool:
    return value in ("until_finished", "forever") or _is_seconds(value)


def whole_number(smallest: int, largest: int) -> OptionType:
    def fits(value: object) -> bool:
        return isinstance(value, int) and not _is_flag(value) and smallest <= value <= largest

    schema = {"type": "integer", "minimum": smallest, "maximum": largest}
    wanted = f"a whole number, {smallest} to {largest}"
    return OptionType("whole number", "integer", schema, wanted, fits, bounds=(smallest, largest))


def short_text(length_max: int) -> OptionType:
    def fits(value: object) -> bool:
        return isinstance(value, str) and 1 <= len(value) <= length_max

    schema = {"type": "string", "minLength": 1, "maxLength": length_max}
    wanted = f"a text of 1 to {length_max} characters"
    return OptionType("text", "text", schema, wanted, fits, is_shown=False)


JSON = OptionType("JSON", "jsonb", {}, "what JSON can hold", _is_anything)
FLAG = OptionType("true or false", "boolean", {"type": "boolean"}, "true or false", _is_flag)
SECONDS = OptionType(
    "seconds",
    "float8",
    {"type": "number", "minimum": 0, "maximum": SECONDS_MAX},
    f"0 to {SECONDS_MAX} seconds",
    _is_seconds,
)
MOMENT = OptionType(
    "time",
    "timestamptz",
    {"type": "string", "format": "date-time"},
    "a datetime with a time zone",
    _is_moment,
)
SCOPE = OptionType(
    "`until_finished`, `forever`, or seconds",
    "text",
    {
        "anyOf": [
            {"enum": ["until_finished", "forever"]},
            {"type": "number", "minimum": 0, "maximum": SECONDS_MAX},
        ]
    },
    f"until_finished, forever, or 0 to {SECONDS_MAX} seconds",
    _is_scope,
)
# What else must hold of a URL is in `webhook_urls`.
URL = short_text(URL_LENGTH_MAX)._replace(
    name="URL",
    wanted=f"a URL of 1 to {URL_LENGTH_MAX} characters",
    schema={
        "type": "string",
        "minLength": 1,
        "maxLength": URL_LENGTH_MAX,
        "pattern": "^https?://[^/?#@]+([/?][^#]*)?$",
    },
)

# As W3C writes it: version, trace, span, flags. No id is all zeros, and no version is ff.
TRACEPARENT_PATTERN = "^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$"
_traceparent = re.compile(TRACEPARENT_PATTERN.replace("$", r"\Z"))


def _is_traceparent(value: object) -> bool:
    return isinstance(value, str) and _traceparent.match(value) is not None


TRACEPARENT = OptionType(
    "traceparent",
    "text",
    {"type": "string", "pattern": TRACEPARENT_PATTERN},
    "a W3C traceparent, as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 is",
    _is_traceparent,
    is_shown=False,
)

# In the order of the arguments of the SQL function, which has `tenant` behind BEFORE_TENANT: those
# who call it by position keep the places that there were, and a new option goes last.
BEFORE_TENANT = "webhook"
OPTIONS = (
    JobOption(
        "payload", JSON, "The input of the job, as JSON.", "{}",
        metavar="JSON|@FILE|-", in_schedules=True,
    ),
    JobOption(
        "priority", whole_number(PRIORITY_MIN, PRIORITY_MAX),
        "Jobs with a higher priority start first.", "the kind's", in_schedules=True,
    ),
    JobOption("run_at", MOMENT, "Do not start before this time.", "now", "--at", metavar="TIME"),
    JobOption(
        "delay_seconds", SECONDS, "Do not start before this much time has passed.",
        flag="--in", metavar="5m", excludes="run_at",
    ),
    JobOption(
        "dedup_key", short_text(NAME_LENGTH_MAX), "Make no job while another one holds this key.",
        flag="--dedup", metavar="KEY",
    ),
    JobOption(
        "dedup_scope", SCOPE, "How long the job holds its key.", "until_finished", None,
        needs="dedup_key",
    ),
    JobOption("hold", FLAG, "Keep the job pending until it is released."),
    JobOption(
        "max_attempts", whole_number(1, 10_001), "How many attempts the job has in all.",
        "the kind's",
    ),
    JobOption(
        "target", short_text(NAME_LENGTH_MAX),
        "Jobs with the same target run one at a time, in order.", in_schedules=True,
    ),
    JobOption(
        "webhook", URL, "POST the outcome of the job to this URL.", "the kind's", metavar="URL"
    ),
    JobOption(
        "traceparent", TRACEPARENT,
        "The trace that the job's first attempt joins, and its retries link to.",
        "the caller's, where it has one",
    ),
)  # fmt: skip
NAMES = tuple(option.name for option in OPTIONS)
BY_NAME: Mapping[str, JobOption] = {option.name: option for option in OPTIONS}
