"""What a test has left behind: processes, threads, open files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_SECONDS = 2.0  # the kernel and a dying thread may take a moment


@contextmanager
def no_leaks() -> Generator[None]:
    """Fails if after the block there are processes, threads or files that were not before it."""
    before = _what_is_there()
    yield
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := _what_is_there() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left, "left behind: " + ", ".join(sorted(left))


def _what_is_there() -> set[str]:
    return {*_processes_below(os.getpid()), *_open_files(), *_threads()}


def _processes_below(parent: int) -> Iterator[str]:
    """Children of ours and theirs, zombies too. Those who left for init are found by session."""
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in _children_of(task):
            yield f"process {child} ({_command_of(child)})"
            try:
                yield from _processes_below(int(child))
            except OSError:
                continue  # it has ended since


def _children_of(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except OSError:
        return []  # a thread that has ended meanwhile


def _command_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return "ended"


def _open_files() -> Iterator[str]:
    for link in Path("/proc/self/fd").iterdir():
        try:
            yield f"file {link.name} ({link.readlink()})"
        except OSError:
            continue  # the folder's own, while it was listed


def _threads() -> Iterator[str]:
    for thread in threading.enumerate():
        if not thread.name.startswith("Trio thread"):  # kept for reuse, end by themselves
            yield f"thread {thread.name}"
