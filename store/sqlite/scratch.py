"""A folder for the occasion, beside the configured file: on the same disk.

Its maker holds a lock on it as long as it lives. One that nobody holds was left behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path

import trio

from musterd.store.errors import StoreMisconfigured
from musterd.store.scratch import Scratch, check_name, is_scratch_name

FILE = "bench.db"
TRIES = 5


class ScratchFolder:
    """See `store.scratch.ScratchStore`. Where the configured file has no folder yet, it is made
    among the system's temporary ones.
    """

    def __init__(self, path: Path, name: str, schema: str) -> None:
        check_name(name)
        self._schema = schema
        beside = path.resolve().parent
        parent = beside if beside.is_dir() else Path(tempfile.gettempdir())
        self._folder = parent / name
        self._lock: int | None = None

    async def make(self) -> Scratch:
        removed = _sweep(self._folder.parent)
        try:
            self._lock = _made(self._folder)
        except OSError as error:
            raise StoreMisconfigured(
                f"no folder can be made in {self._folder.parent} ({error.strerror}): be the user"
                " whose store it is, or name a file elsewhere: --set store.url=sqlite:////path"
            ) from error
        await trio.lowlevel.checkpoint()
        url = f"sqlite:///{self._folder / FILE}"
        product = f"SQLite {sqlite3.sqlite_version}"
        return Scratch(url, self._schema, url, product, False, removed, ())

    async def remove(self) -> None:
        if self._lock is None:
            return
        try:
            shutil.rmtree(self._folder)
        except OSError as error:
            said = f"{self._folder} cannot be removed ({error.strerror}): remove it"
            raise StoreMisconfigured(said) from error
        finally:
            os.close(self._lock)
            self._lock = None
            await trio.lowlevel.cancel_shielded_checkpoint()


def _sweep(parent: Path) -> list[str]:
    """Removes what was left behind; gives that."""
    removed: list[str] = []
    for folder in sorted(parent.glob("musterd_bench_*")):
        if folder.is_symlink() or not is_scratch_name(folder.name) or not _is_ours(folder):
            continue
        with suppress(OSError):  # another measurement, under way; or another user's
            lock = _locked(folder)
            try:
                shutil.rmtree(folder)
            finally:
                os.close(lock)
            removed.append(f"folder {folder}")
    return removed


def _is_ours(folder: Path) -> bool:
    """Nothing is in it but a store, or nothing yet."""
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return False
    return all(name.startswith(FILE) for name in names)


def _made(folder: Path) -> int:
    """Makes it; gives the lock. Another measurement may remove it before it is locked."""
    for _ in range(TRIES):
        folder.mkdir(mode=0o700)
        with suppress(BlockingIOError, FileNotFoundError):
            lock = _locked(folder)
            if folder.is_dir():
                return lock
            os.close(lock)
        with suppress(FileNotFoundError):
            folder.rmdir()
    raise BlockingIOError(errno.EAGAIN, "somebody else removes it each time")


def _locked(folder: Path) -> int:
    """Raises BlockingIOError where somebody else holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
