"""Sorts SQLite's errors by what to do: weather, wrong configuration, refused, outcome unknown."""

from __future__ import annotations

import errno
import sqlite3
import tempfile
from pathlib import Path

from musterd.store.errors import (
    InputRefused,
    OutcomeUnknown,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
)

WEATHER = {
    sqlite3.SQLITE_BUSY: "timeout",
    sqlite3.SQLITE_LOCKED: "timeout",
    sqlite3.SQLITE_PROTOCOL: "timeout",
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_IOERR: "unreachable",
    sqlite3.SQLITE_NOMEM: "unreachable",
    sqlite3.SQLITE_INTERRUPT: "timeout",
}
MISCONFIGURED = {
    sqlite3.SQLITE_CANTOPEN: "check that the folder exists and may be written",
    sqlite3.SQLITE_PERM: "check the rights on the file and its folder",
    sqlite3.SQLITE_AUTH: "check the rights on the file and its folder",
    sqlite3.SQLITE_NOTADB: "check [store] url: this file is something else",
    sqlite3.SQLITE_CORRUPT: "restore the file from a backup",
}
REFUSED = frozenset({sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG})
# Values that never reach SQLite: lone surrogates, integers beyond 64 bits, texts beyond its limit.
UNBINDABLE = (UnicodeEncodeError, OverflowError, sqlite3.DataError)

NO_SCHEMA = "the schema is not there: start the daemon or run `musterd db migrate`"

FILE_WEATHER = {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_full", errno.EROFS: "read_only"}
# May be a disk that is full or read-only: SQLite does not always say.
OF_THE_DISK = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
PROBE_BYTES = 4096


def sort_error(
    error: Exception,
    what: str,
    where: str,
    *,
    committing: bool = False,
    folder: Path | None = None,
) -> StoreError | None:
    """The error to raise instead; None where it is a bug of ours, to be raised as it is. `folder`:
    that of the file, None where it is in memory.
    """
    message = f"{what}: {where}: {error}"
    code = primary_code(error)
    trouble = disk_trouble(folder) if code in OF_THE_DISK and folder is not None else None
    if code in REFUSED or (code == 0 and isinstance(error, UNBINDABLE)):
        return InputRefused(message)
    if code == sqlite3.SQLITE_CANTOPEN and trouble is not None:
        return StoreUnavailable(message, trouble)
    if code in MISCONFIGURED:
        return StoreMisconfigured(f"{message}: {MISCONFIGURED[code]}")
    if code == sqlite3.SQLITE_ERROR and str(error).startswith("no such table"):
        return StoreMisconfigured(f"{message}: {NO_SCHEMA}")
    if code == sqlite3.SQLITE_IOERR and committing:
        # The log may hold the whole transaction: the next to open the file decides if it counts.
        return OutcomeUnknown(message, trouble or WEATHER[code])
    if code in WEATHER:
        return StoreUnavailable(message, trouble or WEATHER[code])
    return None


def disk_trouble(folder: Path) -> str | None:
    """Whether the disk is full or read-only, by trying: a disk that the kernel has given up looks
    as before.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            probe.write(bytes(PROBE_BYTES))
    except OSError as error:
        return FILE_WEATHER.get(error.errno or 0)
    return None


def primary_code(error: Exception) -> int:
    """SQLite's code, the low byte of an extended one. 0 = the error is of Python's making."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def sort_file_error(error: OSError, what: str, where: str) -> StoreUnavailable | StoreMisconfigured:
    """As `sort_error`, for the files beside the database and the folder they are in."""
    message = f"{what}: {where}: {error.strerror or error}"
    trouble = FILE_WEATHER.get(error.errno or 0)
    if trouble is not None:
        return StoreUnavailable(message, trouble)
    return StoreMisconfigured(f"{message}: check [store] url and the rights on its folder")
