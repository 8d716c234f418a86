"""Where an embedded store is: its file, and beside it the pipe by which its daemon is woken."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from musterd.config.secrets import mask_url

_SQLITE = "sqlite:///"


def sqlite_path(url: str) -> Path:
    """Gives the file that a `sqlite:///` URL names. Nothing in it is percent-decoded."""
    if not url.startswith(_SQLITE):
        raise ValueError(f"not a SQLite URL: {mask_url(url)}")
    return Path(url.removeprefix(_SQLITE))


def is_file(where: str) -> bool:
    """Whether a store that says so of its place is a file; one in memory is none."""
    return where.startswith(_SQLITE) and not where.endswith(":memory:")


def ring_pipe(path: Path, line: bytes) -> None:
    """Writes a line into the pipe; never fails: there may be no daemon, or one that has hints
    enough.
    """
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(descriptor, line + b"\n")
        finally:
            os.close(descriptor)
