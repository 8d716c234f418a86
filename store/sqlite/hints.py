"""Hints of new work: an event within the process, a pipe beside the file for other processes.

The daemon makes the pipe and reads it; who enqueues writes one byte if somebody reads, and goes on
if nobody does. A pipe left behind by a dead daemon has no reader and harms nobody.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import trio

from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.sqlite.troubles import sort_file_error

BYTES_AT_ONCE = 65536  # a pipe holds no more: one read takes all hints that have gathered


class Hints:
    """`path` None = in memory: nobody else can enqueue."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._pipe: int | None = None
        self._rung = trio.Event()
        self._reading = trio.Lock()

    def listen(self) -> None:
        """Makes the pipe and reads it from now on. Raises `StoreMisconfigured` if it cannot."""
        if self._path is None or self._pipe is not None:
            return
        try:
            _make_pipe(self._path)
            # Opened for writing too, so that it does not end whenever the last enqueuer closes it.
            self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise sort_file_error(error, "making the pipe for hints", str(self._path)) from error

    def ring(self) -> None:
        """Never fails: the jobs are in the store, and polling finds them without a hint."""
        rung, self._rung = self._rung, trio.Event()
        rung.set()
        if self._path is not None:
            with contextlib.suppress(OSError):  # no daemon, or one that has hints enough
                _write_one(self._path)

    async def wait(self) -> None:
        if self._pipe is None:
            await self._rung.wait()
            return
        async with self._reading:
            await self._read()

    async def _read(self) -> None:
        pipe = self._pipe
        if pipe is None:
            raise StoreUnavailable("waiting for hints: the store has been closed", "unreachable")
        try:
            await trio.lowlevel.wait_readable(pipe)
        except trio.ClosedResourceError as error:
            raise StoreUnavailable(
                "waiting for hints: the store has been closed", "unreachable"
            ) from error
        with contextlib.suppress(BlockingIOError):  # another reader was quicker
            os.read(pipe, BYTES_AT_ONCE)

    def close(self) -> None:
        if self._pipe is not None:
            trio.lowlevel.notify_closing(self._pipe)
            os.close(self._pipe)
            self._pipe = None


def _make_pipe(path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    if not stat.S_ISFIFO(path.stat().st_mode):
        raise StoreMisconfigured(
            f"making the pipe for hints: {path}: found a file that is no pipe: move it away"
        )


def _write_one(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(descriptor, b".")
    finally:
        os.close(descriptor)
