"""One daemon a file: a lock beside the database, which the system holds as long as it lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from musterd.store.errors import StoreMisconfigured
from musterd.store.sqlite.errors import sort_file_error


class DaemonLock:
    """The file stays when the daemon goes: what counts is the lock on it, which dies with it."""

    def __init__(self, path: Path, where: str) -> None:
        self._path = path
        self._where = where
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def take(self) -> None:
        """Raises `StoreMisconfigured` if another daemon has it, and says which."""
        what = "taking the daemon's lock"
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise sort_file_error(error, what, str(self._path)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise StoreMisconfigured(
                f"{what}: {self._where}: {holder} runs on this file: a SQLite file has one daemon;"
                " stop the other one, give this one a file of its own, or use PostgreSQL"
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise sort_file_error(error, what, str(self._path)) from error
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    return f"another daemon (process {text})" if text.isdigit() else "another daemon"
