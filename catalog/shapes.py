"""Single values of a catalog file: the shapes that only it has, and the rules for each."""

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from attrs import Attribute, frozen

from musterd.config.faults import Unfit, did_you_mean

_DURATION_MS_MAX = 86_400_000
_RANGE_ENDS = 2
_ARGUMENTS_MAX = 1_000
_STATUS_MAX = 255
_NEVER_RETRIED = "budget_exceeded"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OCTAL = re.compile(r"0?[0-7]{1,3}")
_PHASES_MAX = 100
_PHASE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_FENCE_PREFIX = "musterd-"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
# Each is the client's own business: to set it would contradict what is really sent.
_CLIENTS_HEADERS = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)


@frozen
class DurationRange:
    """The bounds of a duration in whole milliseconds; a hash of the job chooses between them."""

    low_ms: int
    high_ms: int


@frozen
class Overrides:
    """A table in a kind's table; read by a class of its own, so that no fault hides another."""

    keys: Mapping[str, object]


@frozen
class HttpKeys(Overrides):
    """The table of an HTTP call, to which there is more than a URL."""


@frozen
class FunctionName:
    """Where a function is: `module:function`."""

    module: str
    function: str


@frozen
class Argv:
    """A program and its arguments."""

    words: tuple[str, ...]


@frozen
class PhaseTables:
    """The phases of a kind; each is read by a class of its own."""

    count: int


@frozen
class Umask:
    """The permissions that new files do not get."""

    bits: int


def duration(raw: object, _kind: object) -> DurationRange:
    ends = cast(list[object], raw) if isinstance(raw, list) else [raw, raw]
    whole = [end for end in ends if isinstance(end, int) and not isinstance(end, bool)]
    if len(ends) != _RANGE_ENDS or len(whole) != _RANGE_ENDS:
        raise Unfit("whole milliseconds, or a range [least, most]")
    low_ms, high_ms = whole
    if not 0 <= low_ms <= high_ms <= _DURATION_MS_MAX:
        raise Unfit(f"0 to {_DURATION_MS_MAX}, the least first")
    return DurationRange(low_ms, high_ms)


def overrides(raw: object, _kind: object) -> Overrides:
    if isinstance(raw, dict):
        return Overrides(cast(dict[str, object], raw))
    raise Unfit("a table", "write it as { key = value }, or as a table of its own")


def http_keys(raw: object, _kind: object) -> HttpKeys:
    if isinstance(raw, dict):
        return HttpKeys(cast(dict[str, object], raw))
    raise Unfit("a table", 'write http = { url = "https://..." }')


def function_name(raw: object, _kind: object) -> FunctionName:
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
    return FunctionName(module, function)


def argv(raw: object, _kind: object) -> Argv:
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
    return Argv(texts)


def umask(raw: object, _kind: object) -> Umask:
    if isinstance(raw, str) and _OCTAL.fullmatch(raw):
        return Umask(int(raw, 8))
    is_bare = type(raw) is int and _OCTAL.fullmatch(str(raw))
    hint = f'write "{raw:03d}", in quotes' if is_bare else ""
    raise Unfit('octal digits in quotes, "000" to "777"', hint)


def phase_tables(raw: object, _kind: object) -> PhaseTables:
    count = len(cast(list[object], raw)) if isinstance(raw, list) else 0
    if 1 <= count <= _PHASES_MAX:
        return PhaseTables(count)
    hint = "write [[kinds.NAME.phases]] above the keys of each"
    raise Unfit(f"a list of 1 to {_PHASES_MAX} tables", hint)


def phase_name(_owner: object, _key: "Attribute[Any]", name: str) -> None:
    """The name can stand in a command line, in a path and in a heading."""
    if not _PHASE_NAME.fullmatch(name):
        raise Unfit("1 to 100 letters, digits, _, . or -")


def error_types(_owner: object, _key: "Attribute[Any]", names: Sequence[str]) -> None:
    """Each is the name of an exception, with its module or without, or of a kind of failure."""
    if not all(map(_is_dotted, names)):
        raise Unfit('names of error types, as "TimeoutError" or "shop.errors.Declined"')
    if _NEVER_RETRIED in names:
        raise Unfit(f"no {_NEVER_RETRIED}", "a spent budget is never retried")
    _check_once(names)


def variable_names(_owner: object, _key: "Attribute[Any]", names: Sequence[str]) -> None:
    """Each can be the name of an environment variable, and none is for the daemon alone."""
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
    """Each can be the exit status of a program that failed."""
    if 0 in statuses:
        raise Unfit(f"1 to {_STATUS_MAX}", "status 0 is success")
    if not all(1 <= status <= _STATUS_MAX for status in statuses):
        raise Unfit(f"1 to {_STATUS_MAX}")
    _check_once(statuses)


def call_url(_owner: object, _key: "Attribute[Any]", url: str) -> None:
    """The URL can be called: http or https, a host, and no secret in it."""
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
    """Gives the value of a header; raises Unfit, whose reader must not show what was found."""
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
