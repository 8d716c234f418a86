"""A machine that is short of something: a disk of a few megabytes that fills up or can no longer be
written, and groups of processes with a limit on memory or on their number. Only root can make them:
tests of others are skipped.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import attrs
import pytest

MIB = 1 << 20
PAGE = 4096
CGROUPS = Path("/sys/fs/cgroup")
LOOKS_MAX = 200
LOOK_SECONDS = 0.05


@attrs.frozen
class Disk:
    """A file system of its own, in a file. `folder` is where it is mounted."""

    folder: Path
    image: Path

    @contextlib.contextmanager
    def full(self) -> Generator[Path]:
        """Not a byte is left when the block begins; gives the file that has them all."""
        filler = self.folder / "filler"
        try:
            fill(filler)
            yield filler
        finally:
            filler.unlink()

    def turn_read_only(self) -> None:
        """As the kernel does when it finds a fault on a disk, whoever has files open there."""
        _do("mount", "-o", "remount,abort", self.folder)

    @contextlib.contextmanager
    def read_only(self) -> Generator[None]:
        """Nobody may have files open there when the block ends."""
        self.turn_read_only()
        try:
            yield
        finally:
            self.mend()

    def mend(self) -> None:
        """Checks it and mounts it anew. Nobody may have files open there."""
        _do("umount", self.folder)
        subprocess.run(["e2fsck", "-p", self.image], check=False, capture_output=True)
        self.mount()

    def mount(self) -> None:
        _do("mount", "-o", "loop", self.image, self.folder)


@contextlib.contextmanager
def disk(mib: int) -> Generator[Disk]:
    """Gone with all that is on it after the block."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    parent = Path(tempfile.mkdtemp(prefix="musterd-disk-", dir="/tmp"))
    parent.chmod(0o755)
    found = Disk(parent / "mounted", parent / "image")
    try:
        found.folder.mkdir()
        with found.image.open("wb") as image:
            image.truncate(mib * MIB)
        _do("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0", found.image)
        found.mount()
        try:
            found.folder.chmod(0o777)
            yield found
        finally:
            _do("umount", "--lazy", found.folder)
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def fill(file: Path) -> None:
    """Until nothing more fits, not even a page."""
    with file.open("ab", buffering=0) as filler:
        for size in (MIB, PAGE):
            while _fits(filler.fileno(), size):
                pass


def _fits(file: int, size: int) -> bool:
    try:
        return os.write(file, bytes(size)) > 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


@attrs.frozen
class Group:
    """A control group, of either version."""

    folder: Path

    def command(self, words: Sequence[str]) -> list[str]:
        """That runs these words inside it, with all that they start."""
        enter = f'echo $$ >{self.folder}/cgroup.procs && exec "$0" "$@"'
        return ["/bin/sh", "-c", enter, *words]

    def set(self, limit: str, value: int) -> None:
        (self.folder / limit).write_text(str(value))

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    @property
    def processes(self) -> list[int]:
        return [int(line) for line in self.read("cgroup.procs").split()]

    def kill_all_but(self, *spared: int) -> None:
        for pid in self.processes:
            if pid not in spared:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def memory_group(mib: int) -> Generator[Group]:
    """What is in it has so much memory together, and no swap."""
    with _group("memory", "memory.max", "memory.limit_in_bytes") as (group, limit):
        group.set(limit, mib * MIB)
        for swap, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", mib * MIB)):
            if (group.folder / swap).exists():
                group.set(swap, value)
        yield group


@contextlib.contextmanager
def pids_group(most: int) -> Generator[Group]:
    """What is in it has so many processes and threads together, as with systemd's `TasksMax=`."""
    with _group("pids", "pids.max", "pids.max") as (group, limit):
        group.set(limit, most)
        yield group


@contextlib.contextmanager
def _group(controller: str, second: str, first: str) -> Generator[tuple[Group, str]]:
    """The group and the name of its limit, in the second version of control groups or the first."""
    is_second = (CGROUPS / "cgroup.controllers").exists()
    parent = CGROUPS if is_second else CGROUPS / controller
    folder = parent / f"musterd-test-{os.getpid()}-{time.monotonic_ns()}"
    limit = second if is_second else first
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if not (folder / limit).exists():
            pytest.skip(f"the control group {folder} has no {limit}")
        yield Group(folder), limit
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Whoever still is in it is killed."""
    for _ in range(LOOKS_MAX):
        Group(folder).kill_all_but()
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(LOOK_SECONDS)
    folder.rmdir()


def _do(*words: str | Path) -> None:
    subprocess.run(words, check=True, capture_output=True)
