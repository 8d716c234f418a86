"""Reading what stands in paths and queries. Pure; each raises `ValueError` for what it cannot read,
which says what is wanted.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, unquote

from musterd.config.faults import did_you_mean, either
from musterd.store.job import JobState
from musterd.web.api.operation import Param

LIMIT_DEFAULT = 50
LIMIT_MAX = 1000
ID_MAX = 2**63 - 1
NAME_LENGTH_MAX = 200
PAIRS_MAX = 50
CURSOR_MARK = "before"
_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_LIMIT = re.compile(r"[0-9]{1,4}", re.ASCII)
_EVENT_ID = re.compile(r"[0-9]{1,19}", re.ASCII)
NO_EVENT_ID = -1


def read_query(text: str, params: Sequence[Param]) -> Mapping[str, object]:
    """Reads a query string by what its route takes; a name that may be given several times gets a
    tuple.
    """
    by_name = {param.name: param for param in params}
    found: dict[str, object] = {}
    for name, value in _pairs(text):
        param = by_name.get(name)
        if param is None:
            hint = did_you_mean(name, by_name) or f"known: {', '.join(by_name)}"
            raise ValueError(f"unknown parameter {name!r}: {hint}")
        try:
            read = param.read(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if param.many:
            earlier = found.get(name, ())
            found[name] = (*earlier, read) if isinstance(earlier, tuple) else (read,)
        elif name in found:
            raise ValueError(f"{name}: given twice, wanted once")
        else:
            found[name] = read
    return found


def job_id(text: str) -> int:
    if _ID.fullmatch(text) and int(text) <= ID_MAX:
        return int(text)
    raise ValueError(f"{text!r} is no job's id")


def state(text: str) -> JobState:
    try:
        return JobState(text)
    except ValueError:
        names = [each.value for each in JobState]
        hint = did_you_mean(text, names)
        said = f"found {text!r}, wanted {either(names)}"
        raise ValueError(f"{said}: {hint}" if hint else said) from None


def name(text: str) -> str:
    """A kind, a target or a tenant."""
    if 1 <= len(text) <= NAME_LENGTH_MAX and "\0" not in text:
        return text
    raise ValueError(f"wanted 1 to {NAME_LENGTH_MAX} characters")


def limit(text: str) -> int:
    if _LIMIT.fullmatch(text) and 1 <= int(text) <= LIMIT_MAX:
        return int(text)
    raise ValueError(f"found {text!r}, wanted a whole number, 1 to {LIMIT_MAX}")


def event_id(text: str) -> int:
    """Never refuses: what is no id of an event gives one that no log has."""
    return int(text) if _EVENT_ID.fullmatch(text.strip()) else NO_EVENT_ID


def cursor_after(job: int) -> str:
    """The cursor of the page after this job. What is in it is nobody's business but ours."""
    return base64.urlsafe_b64encode(f"{CURSOR_MARK} {job}".encode()).decode().rstrip("=")


def cursor(text: str) -> int:
    """Gives the id that the page's jobs are before."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        plain = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
        mark, _, job = plain.rpartition(" ")
        if mark == CURSOR_MARK:
            return job_id(job)
    except (UnicodeError, binascii.Error, ValueError):
        pass  # said below: what it holds is nobody's business
    raise ValueError("wanted the `next` of an earlier answer")


def place(text: str) -> str:
    """A part of a path, decoded."""
    try:
        return name(unquote(text, errors="strict"))
    except UnicodeDecodeError:
        raise ValueError("wanted UTF-8") from None


def _pairs(text: str) -> Sequence[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=PAIRS_MAX)
    except UnicodeDecodeError:
        raise ValueError("the query is not UTF-8") from None
    except ValueError:
        raise ValueError(f"the query has more than {PAIRS_MAX} parameters") from None
