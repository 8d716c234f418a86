"""Jobs that are about to be deleted, written down first: into a file, and for the store to keep."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from musterd.catalog.kinds import Catalog
from musterd.store.jobs import JobRecord
from musterd.store.report import job_object
from musterd.store.retention import Kept


class ArchiveFailed(Exception):
    """The file could not be written: nothing that was to be in it may be deleted."""


@attrs.frozen
class Archivist:
    """A `Keeper` (see `store.retention`). `file` takes a JSON object a line, `in_table` says that
    the store keeps them, `tells` that the hook is told of them; `payload_told`: with the payload.
    """

    tenant: str
    catalog: Callable[[], Catalog]
    file: Path | None
    in_table: bool
    tells: bool
    payload_told: bool

    def __call__(self, jobs: Sequence[JobRecord]) -> Sequence[Kept]:
        """Raises `ArchiveFailed`. When it returns the lines are on the disk."""
        catalog = self.catalog()
        objects = [job_object(job, self.tenant, catalog.budget_of(job.kind)) for job in jobs]
        if self.file is not None:
            append_lines(self.file, [json.dumps(each) for each in objects])
        return [
            Kept(
                json.dumps(each) if self.in_table else None,
                json.dumps(self._told(each)) if self.tells else None,
            )
            for each in objects
        ]

    def _told(self, job: dict[str, object]) -> dict[str, object]:
        if self.payload_told:
            return job
        return {name: value for name, value in job.items() if name != "payload"}


def append_lines(path: Path, lines: Sequence[str]) -> None:
    """Appends whole lines, or none, and returns when they are on the disk. A file that is not there
    is made, for its owner alone. Several processes may write the same file.

    Raises `ArchiveFailed`. A line that a crash has cut off is ended before the next one begins.
    """
    try:
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        try:
            _append(descriptor, "".join(f"{line}\n" for line in lines).encode())
        finally:
            os.close(descriptor)
        if is_new:
            _sync_folder(path.parent)
    except OSError as error:
        raise ArchiveFailed(f"{path}: {error.strerror or error}") from error


def _append(descriptor: int, data: bytes) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("it is no plain file")
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # until it is closed
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)  # no half of a batch stays
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
