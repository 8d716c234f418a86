"""The four pipes of a command: its stdin, stdout, stderr, and file descriptor 3."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

import trio

from musterd.workers.runners.capture import Head, Tail
from musterd.workers.runners.progress_lines import ProgressLines
from musterd.workers.running import Note

DRAIN_SECONDS_MAX = 1.0  # for what is still in the pipes once the whole group has ended


class Writes(Protocol):
    """Takes what arrives."""

    def add(self, chunk: bytes | bytearray) -> None: ...


class Pipes:
    """Ours are ends that Trio waits for; the child's are plain files, closed once it has them.

    Reads on while the command is told to stop, so that what it writes then can't block it.
    """

    def __init__(self, result_bytes_max: int, log_bytes_max: int) -> None:
        """Raises OSError if there are too few file descriptors."""
        self.result = Head(result_bytes_max)
        self.log = Tail(log_bytes_max)
        self._ours: list[trio.lowlevel.FdStream] = []
        self._theirs: list[int] = []
        self._reading = trio.CancelScope(shield=True)
        try:
            self.stdin = self._open(ours_writes=True)
            self.stdout, self.stderr, self.progress = (self._open() for _ in range(3))
        except OSError:
            self.close()
            raise

    def _open(self, *, ours_writes: bool = False) -> int:
        reads, writes = os.pipe()
        ours, theirs = (writes, reads) if ours_writes else (reads, writes)
        self._theirs.append(theirs)
        self._ours.append(trio.lowlevel.FdStream(ours))
        return theirs

    def close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def close(self) -> None:
        self.close_theirs()
        for stream in self._ours:
            stream.close()

    @contextmanager
    def until_it_ended(self) -> Generator[None]:
        """After the block the group is no more: what is in the pipes is read, then no more."""
        try:
            yield
        finally:
            self._reading.deadline = trio.current_time() + DRAIN_SECONDS_MAX

    async def carry(
        self, payload: str, tell: Callable[[Note], None], on_flood: Callable[[], None]
    ) -> None:
        """Feeds stdin, reads the rest to their ends. `on_flood`: stdout is more than a result."""
        stdin, stdout, stderr, progress = self._ours
        lines = ProgressLines(tell, self.complain)
        with self._reading:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_read, stderr, self.log)
                nursery.start_soon(_read, progress, lines)
                nursery.start_soon(_feed, stdin, payload.encode())
                await self._read_result(stdout, on_flood)
                # A program that has closed stdout may live on and still tell of its progress.
        lines.end()

    async def _read_result(
        self, stdout: trio.lowlevel.FdStream, on_flood: Callable[[], None]
    ) -> None:
        async for chunk in stdout:
            self.result.add(chunk)
            if self.result.overflowed:
                on_flood()
                return

    def complain(self, text: str) -> None:
        """A line of ours in the command's log."""
        self.log.add(f"musterd: {text}\n".encode())


async def _read(stream: trio.lowlevel.FdStream, into: Writes) -> None:
    async for chunk in stream:
        into.add(chunk)


async def _feed(stdin: trio.lowlevel.FdStream, payload: bytes) -> None:
    try:
        await stdin.send_all(payload)
    except trio.BrokenResourceError:
        pass  # it need not read what it is given
    finally:
        stdin.close()
