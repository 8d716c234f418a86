"""The tables of a catalog file as they are written: their keys and checked values."""

import keyword
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import SplitResult, urlsplit

import attrs
from attrs import Attribute, field, frozen

from musterd.catalog.kinds import Isolation, Outcome, PhaseInput
from musterd.config.faults import Unfit, did_you_mean
from musterd.config.job_options import PRIORITY_MAX, PRIORITY_MIN
from musterd.config.secrets import mask_all
from musterd.config.settings import OnLeaseLost
from musterd.config.strict import read_by
from musterd.config.validators import Between, user_name, webhook_url

DURATION_MS_MAX = 86_400_000
_RANGE_ENDS = 2
_ARGUMENTS_MAX = 1_000
_STATUS_MAX = 255
_NEVER_RETRIED = "budget_exceeded"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OCTAL = re.compile(r"0?[0-7]{1,3}")
PHASES_MAX = 100
_PHASE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_FENCE_PREFIX = "musterd-"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
# Each is the client's own business: to set it would contradict what is really sent.
_CLIENTS_HEADERS = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)


def duration(raw: object) -> tuple[int, int]:
    """The bounds of a duration in whole milliseconds; a hash of the job chooses between them."""
    ends = cast(list[object], raw) if isinstance(raw, list) else [raw, raw]
    whole = [end for end in ends if isinstance(end, int) and not isinstance(end, bool)]
    if len(ends) != _RANGE_ENDS or len(whole) != _RANGE_ENDS:
        raise Unfit("whole milliseconds, or a range [least, most]")
    low_ms, high_ms = whole
    if not 0 <= low_ms <= high_ms <= DURATION_MS_MAX:
        raise Unfit(f"0 to {DURATION_MS_MAX}, the least first")
    return low_ms, high_ms


def inner_table(
    raw: object, hint: str = "write it as { key = value }, or as a table of its own"
) -> Mapping[str, object]:
    """A table in a kind's table; a class of its own reads it, so that no fault hides another."""
    if isinstance(raw, dict):
        return cast(dict[str, object], raw)
    raise Unfit("a table", hint)


def function_name(raw: object) -> tuple[str, str]:
    """A module and a function in it."""
    wanted = '"module:function", as in "shop.images:thumbnail"'
    if not isinstance(raw, str):
        raise Unfit(wanted)
    module, colon, function = raw.partition(":")
    if not colon and _is_dotted(raw) and "." in raw:
        module, _, function = raw.rpartition(".")
        raise Unfit(wanted, f'write "{module}:{function}"')
    if raw.endswith(".py") or "/" in raw:
        raise Unfit(wanted, "name the module, not its file")
    if not colon or not _is_dotted(module) or not _is_name(function):
        raise Unfit(wanted)
    return module, function


def argv(raw: object) -> tuple[str, ...]:
    if isinstance(raw, str):
        raise Unfit(
            "a list of strings",
            "there is no shell: write the program and each argument as its own string",
        )
    given = cast(list[object], raw) if isinstance(raw, list) else [None]
    texts = tuple(each for each in given if isinstance(each, str) and "\0" not in each)
    if len(texts) != len(given) or len(texts) > _ARGUMENTS_MAX:
        raise Unfit(f"a list of up to {_ARGUMENTS_MAX} strings, the program first")
    if not texts or not texts[0]:
        raise Unfit("a list that begins with the program")
    if "/" in texts[0] and not texts[0].startswith("/"):
        raise Unfit("an absolute path, or a bare name that is looked up on PATH")
    return texts


def umask(raw: object) -> int:
    """The permissions that new files lack."""
    if isinstance(raw, str) and _OCTAL.fullmatch(raw):
        return int(raw, 8)
    is_bare = type(raw) is int and _OCTAL.fullmatch(str(raw))
    hint = f'write "{raw:03d}", in quotes' if is_bare else ""
    raise Unfit('octal digits in quotes, "000" to "777"', hint)


def phase_count(raw: object) -> int:
    """The number of phases; each is read separately."""
    count = len(cast(list[object], raw)) if isinstance(raw, list) else 0
    if 1 <= count <= PHASES_MAX:
        return count
    hint = "write [[kinds.NAME.phases]] above the keys of each"
    raise Unfit(f"a list of 1 to {PHASES_MAX} tables", hint)


def phase_name(_owner: object, _key: "Attribute[Any]", name: str) -> None:
    """Accepts what can be used in a command line, a path and a heading."""
    if not _PHASE_NAME.fullmatch(name):
        raise Unfit("1 to 100 letters, digits, _, . or -")


def phase_field(raw: object) -> tuple[str, str]:
    """The name of a phase, and a key of the object that is its result."""
    phase, slash, key = raw.partition("/") if isinstance(raw, str) else ("", "", "")
    if not slash or not key or not _PHASE_NAME.fullmatch(phase):
        raise Unfit('"phase/field", as in "order/wait_seconds"')
    return phase, key


def error_types(_owner: object, _key: "Attribute[Any]", names: Sequence[str]) -> None:
    """Accepts names of exceptions, qualified or not, and sorts of failure."""
    if not all(map(_is_dotted, names)):
        raise Unfit('names of error types, as "TimeoutError" or "shop.errors.Declined"')
    if _NEVER_RETRIED in names:
        raise Unfit(f"no {_NEVER_RETRIED}", "a spent budget is never retried")
    _check_once(names)


def variable_names(_owner: object, _key: "Attribute[Any]", names: Sequence[str]) -> None:
    """Accepts names of environment variables that are not for the daemon alone."""
    for name in names:
        bare, equals, _value = name.partition("=")  # what follows may be a secret
        if equals:
            raise Unfit("names of variables, without values", f"{bare} comes from the daemon's own")
        if not _VARIABLE.fullmatch(name):
            raise Unfit("names of variables: letters, digits and _", f"{bare!r} is none")
        if name.startswith("MUSTERD_"):
            raise Unfit(
                "no MUSTERD_ variable", "they belong to the daemon, or are set for each job"
            )
    _check_once(names)


def exit_statuses(_owner: object, _key: "Attribute[Any]", statuses: Sequence[int]) -> None:
    """Accepts exit statuses of failure."""
    if 0 in statuses:
        raise Unfit(f"1 to {_STATUS_MAX}", "status 0 is success")
    if not all(1 <= status <= _STATUS_MAX for status in statuses):
        raise Unfit(f"1 to {_STATUS_MAX}")
    _check_once(statuses)


def call_url(_owner: object, _key: "Attribute[Any]", url: str) -> None:
    """Accepts an http or https URL with a host and without secrets."""
    parts = _split(url)
    if parts.scheme not in ("http", "https") or not url.startswith(f"{parts.scheme}://"):
        guess = did_you_mean(parts.scheme, ("http", "https")) if parts.scheme else ""
        raise Unfit("a URL that starts with http:// or https://", guess)
    if "@" in parts.netloc or ("@" in url and not _has_good_port(parts)):
        raise Unfit(
            "a URL without user and password", "put an Authorization header into header_files"
        )
    if not _has_good_port(parts):
        raise Unfit("a port of 1 to 65535")
    if not parts.hostname:
        raise Unfit("a URL with a host")
    if parts.fragment or url.endswith("#"):
        raise Unfit("a URL without #", "what follows # is never sent")


def header_name(name: str) -> None:
    """Raises Unfit unless a kind may send a header of this name."""
    if not _HEADER_NAME.fullmatch(name):
        raise Unfit("the name of a header: letters, digits and -")
    if name.lower().startswith(_FENCE_PREFIX):
        raise Unfit(f"no header that starts with {_FENCE_PREFIX}", "they carry the job's fence")
    if name.lower() in _CLIENTS_HEADERS:
        raise Unfit("a header that the client does not set itself", "the client computes it")


def header_value(raw: object) -> str:
    """The value of a header. Raises Unfit; callers must not show the text itself."""
    if isinstance(raw, str) and (not raw or _HEADER_VALUE.fullmatch(raw)):
        return raw
    raise Unfit("one line of printable ASCII, no space at either end")


def _split(url: str) -> SplitResult:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise Unfit("a URL of printable ASCII", "write other characters as %XX")
    try:
        return urlsplit(url)
    except ValueError:
        raise Unfit("a URL, with any IPv6 address in brackets") from None


def _has_good_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _check_once(values: Sequence[object]) -> None:
    if len(set(values)) != len(values):
        raise Unfit("each only once")


def _is_dotted(text: str) -> bool:
    return all(map(_is_name, text.split(".")))


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


_DAY = 86_400
DELAY_SECONDS_MAX = 100 * 365 * _DAY
_HTTP_TABLE = partial(inner_table, hint='write http = { url = "https://..." }')
_MIB_MAX = 1_048_576  # one tebibyte


@frozen
class DoingTable:
    """The keys that define behaviour, for kinds and phases; None = not set."""

    duration_ms: tuple[int, int] = read_by(duration, default=(0, 0))
    outcome: Outcome = "success"
    fail_first: int = field(default=0, validator=Between(0, 10_000))
    time_limit_seconds: float | None = field(
        default=None, validator=attrs.validators.optional(Between(0.001, 30 * _DAY))
    )
    grace_seconds: float | None = field(
        default=None, validator=attrs.validators.optional(Between(0, 3_600))
    )
    python: tuple[str, str] | None = read_by(function_name, default=None)
    isolation: Isolation = "process"
    command: tuple[str, ...] | None = read_by(argv, default=None)
    user: str = field(default="", validator=user_name)
    cwd: Path | None = None
    umask: int = read_by(umask, default=0o077)
    environment: tuple[str, ...] = field(
        default=(), validator=variable_names, metadata={"mask": mask_all}
    )
    rlimits: Mapping[str, object] = read_by(inner_table, factory=dict[str, object])
    retry_on_exit: tuple[int, ...] = field(default=(), validator=exit_statuses)
    snooze_on_exit: tuple[int, ...] = field(default=(), validator=exit_statuses)
    snooze_seconds: float = field(default=60.0, validator=Between(0.001, DELAY_SECONDS_MAX))
    http: Mapping[str, object] | None = read_by(_HTTP_TABLE, default=None)
    retention: Mapping[str, object] = read_by(inner_table, factory=dict[str, object])


@frozen
class KindTable(DoingTable):
    retryable: bool = False
    retry_on: tuple[str, ...] = field(default=(), validator=error_types)
    retry: Mapping[str, object] = read_by(inner_table, factory=dict[str, object])
    priority: int = field(default=0, validator=Between(PRIORITY_MIN, PRIORITY_MAX))
    on_lease_lost: OnLeaseLost | None = None
    budgets: Mapping[str, object] = read_by(inner_table, factory=dict[str, object])
    max_running: int | None = field(
        default=None, validator=attrs.validators.optional(Between(1, 1_000_000))
    )
    max_wait_seconds: float | None = field(
        default=None, validator=attrs.validators.optional(Between(0, 30 * _DAY))
    )
    webhook: str = field(default="", validator=webhook_url)
    phases: int | None = read_by(phase_count, default=None)  # how many


@frozen
class PhaseTable(DoingTable):
    """The keys of `[[kinds.NAME.phases]]`; None = inherited from the kind."""

    name: str = field(default="", validator=phase_name)
    retryable: bool | None = None
    retry_on: tuple[str, ...] | None = field(
        default=None, validator=attrs.validators.optional(error_types)
    )
    input: PhaseInput = "payload"
    delay_seconds: float | None = field(
        default=None, validator=attrs.validators.optional(Between(0, DELAY_SECONDS_MAX))
    )
    delay_from: tuple[str, str] | None = read_by(phase_field, default=None)


# Which behaviour each key goes with; a key that is not here goes with every one.
BEHAVIOUR_KEYS: Mapping[str, tuple[str, ...]] = {
    "deterministic": ("duration_ms", "outcome", "fail_first"),
    "python": ("isolation", "user", "budgets"),
    "command": (
        "user",
        "cwd",
        "umask",
        "environment",
        "rlimits",
        "retry_on_exit",
        "snooze_on_exit",
        "snooze_seconds",
        "input",
        "budgets",
    ),
    "http": ("input", "budgets"),
    "phases": ("budgets",),
}
# Tables within a kind's own; each is read by a class of its own (`budgets` has any keys).
INNER_TABLES = ("retry", "budgets", "rlimits", "http", "retention")


@frozen
class HttpTable:
    url: str = field(default="", validator=call_url)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: Mapping[str, object] = read_by(inner_table, factory=dict[str, object])
    header_files: Mapping[str, object] = read_by(inner_table, factory=dict[str, object])


def _limit(high: int, low: int = 1) -> int | None:
    between = attrs.validators.optional(Between(low, high))
    return cast("int | None", field(default=None, validator=between))


@frozen
class RlimitTable:
    """Limits for a program, as in setrlimit(2)."""

    as_mb: int | None = _limit(_MIB_MAX)
    core_mb: int | None = _limit(_MIB_MAX, low=0)
    cpu_seconds: int | None = _limit(30 * _DAY)
    data_mb: int | None = _limit(_MIB_MAX)
    fsize_mb: int | None = _limit(_MIB_MAX, low=0)
    nofile: int | None = _limit(_MIB_MAX, low=8)
    nproc: int | None = _limit(_MIB_MAX)
    stack_mb: int | None = _limit(_MIB_MAX)
