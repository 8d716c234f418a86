"""Hints of new work: an event within the process, a pipe beside the file for other processes.

The daemon makes the pipe and reads it; a client that enqueues writes one line if there is a reader,
and goes on if there is none. A pipe left behind by a dead daemon has no reader and harms nobody. An
empty line is new work, a number is a job whose holder is asked for something.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection
from pathlib import Path

import trio

from musterd.store.embedded import ring_pipe
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.queue import Hint
from musterd.store.sqlite.errors import sort_file_error

BYTES_AT_ONCE = 65536  # a pipe holds no more: one read takes all hints that have gathered


class Hints:
    """`path` None = in memory: nobody else can enqueue."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._pipe: int | None = None
        self._rung = trio.Event()
        self._lines: set[bytes] = set()  # of those that rang within this process
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

    def ring(self, job_id: int | None = None) -> None:
        """New work, or a request about a leased job. Never fails: what is in the store is found
        without a hint.
        """
        line = b"" if job_id is None else str(job_id).encode()
        if self._pipe is None:
            self._lines.add(line)
        rung, self._rung = self._rung, trio.Event()
        rung.set()
        if self._path is not None:
            ring_pipe(self._path, line)

    async def wait(self) -> Hint:
        if self._pipe is None:
            await self._rung.wait()
            lines, self._lines = self._lines, set()
            return _hint(lines)
        async with self._reading:
            return await self._read()

    async def _read(self) -> Hint:
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
            return _hint(os.read(pipe, BYTES_AT_ONCE).split(b"\n")[:-1])
        return _hint([])

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


def _hint(lines: Collection[bytes]) -> Hint:
    requests = frozenset(int(line) for line in lines if line.isdigit())
    return Hint(b"" in lines, requests)
