"""Sorts PostgreSQL's errors by what to do about them: weather, wrong configuration, refused values,
outcome unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from musterd.store.errors import (
    InputRefused,
    OutcomeUnknown,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
)

READ_ONLY = "25006"
LOCKED = "55P03"


class Locked(StoreUnavailable):
    """Somebody kept a lock for longer than was waited for it: nothing was written."""


# SQLSTATE, whole or its class -> the word for it
WEATHER = {
    "08": "unreachable",
    "57P01": "unreachable",
    "57P02": "unreachable",
    "57P03": "starting",
    "57P05": "unreachable",
    "58": "unreachable",
    "53300": "too_many_connections",
    "53100": "disk_full",
    "53": "too_many_connections",
    READ_ONLY: "read_only",
    "40": "conflict",
    "57014": "timeout",
    "25P03": "timeout",
    "55": "conflict",
    "XX": "unreachable",
}


# The server said that it was going away: whether the last transaction was committed is not known.
UNKNOWN = frozenset({"08", "57P01", "57P02", "40003"})


# While connecting and while working: the configuration, not the weather.
MISCONFIGURED = frozenset({"28", "3D", "3F", "42", "0A"})
REFUSED = frozenset({"22", "23"})


# A disk that can no longer be written is a lack of rights to PostgreSQL, as a role's is. Where in
# the server it was found tells them apart, in any language.
NO_RIGHT = "42501"
STORAGE_SOURCES = frozenset({"md.c", "fd.c", "slru.c", "smgr.c", "xlog.c"})


def sort_error(error: psycopg.Error, what: str, where: str, *, sent: bool) -> StoreError:
    """The error to raise instead. `sent`: the request had left, so that a broken connection leaves
    its outcome open.
    """
    message = f"{what}: {where}: {first_line(error)}"
    state = error.sqlstate
    if state is None:
        if isinstance(error, psycopg.DataError):
            return InputRefused(message)
        if sent:
            return OutcomeUnknown(message, "unreachable")
        return StoreUnavailable(message, trouble_of_text(str(error)))
    if state[:2] in REFUSED:
        return InputRefused(message)
    if state == NO_RIGHT and error.diag.source_file in STORAGE_SOURCES:
        return StoreUnavailable(message, "read_only")
    if state[:2] in MISCONFIGURED:
        return StoreMisconfigured(f"{message}{advice(state)}")
    if state == LOCKED:
        return Locked(message, "timeout")
    trouble = WEATHER.get(state) or WEATHER.get(state[:2], "conflict")
    if sent and (state in UNKNOWN or state[:2] in UNKNOWN):
        return OutcomeUnknown(message, trouble)
    return StoreUnavailable(message, trouble)


def sort_connect_error(error: psycopg.Error, where: str) -> StoreError:
    """As `sort_error`, for the attempt to connect, where libpq gives text but no SQLSTATE."""
    if isinstance(error, NoHostServes):
        return _sort_several(error.errors, where)
    if error.sqlstate is not None:
        return sort_error(error, "connecting", where, sent=False)
    text = str(error)
    message = f"connecting: {where}: {first_line(error)}"
    if isinstance(error, psycopg.ProgrammingError) or any(
        sign in text for sign in WRONG_CONFIGURATION
    ):
        return StoreMisconfigured(f"{message}: check [store] url")
    return StoreUnavailable(message, trouble_of_text(text))


WRONG_CONFIGURATION = (
    "authentication failed",
    "no pg_hba.conf entry",
    "no password supplied",
    "is not permitted to log in",
    'FATAL:  role "',
    'FATAL:  database "',
    "no such database",  # this and what follows are PgBouncer's
    "no such user",
    "unsupported startup parameter",
)


class NoHostServes(psycopg.OperationalError):
    """All hosts of a URL were asked, and each has failed in its way."""

    def __init__(self, errors: Sequence[psycopg.Error]) -> None:
        super().__init__("; ".join(dict.fromkeys(map(first_line, errors))))
        self.errors = errors


def _sort_several(errors: Sequence[psycopg.Error], where: str) -> StoreError:
    """Wrong configuration only where it is that at each host: the one that is away may be fine."""
    found = [sort_connect_error(error, where) for error in errors]
    message = f"connecting: {where}: {'; '.join(dict.fromkeys(map(first_line, errors)))}"
    troubles = {one.trouble for one in found if isinstance(one, StoreUnavailable)}
    if not troubles:
        return StoreMisconfigured(f"{message}: check [store] url")
    return StoreUnavailable(message, next(filter(troubles.__contains__, CLEAREST), "unreachable"))


CLEAREST = ("read_only", "starting", "too_many_connections")  # of hosts that answer differently


def trouble_of_text(text: str) -> str:
    """The word for a failed connection, from the server's or libpq's English text."""
    if "too many clients" in text or "remaining connection slots" in text:
        return "too_many_connections"
    if "starting up" in text or "shutting down" in text or "recovery mode" in text:
        return "starting"
    if "session is read-only" in text or "hot standby mode" in text:
        return "read_only"
    return "unreachable"


def advice(state: str) -> str:
    if state in ("42P01", "3F000"):
        return ": the schema is not there: start the daemon or run `musterd db migrate`"
    if state == NO_RIGHT:
        return ": the role lacks a right: grant it, or use the role that owns the schema"
    return ""


def first_line(error: psycopg.Error) -> str:
    primary = error.diag.message_primary
    return primary or str(error).strip().partition("\n")[0] or type(error).__name__
