"""Whether this machine suits a daemon: disks, files, permissions. Pure."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence

import attrs

from musterd.config.settings import Settings
from musterd.console.doctor.finding import Finding, fail, ok, warn
from musterd.store.words import count_text

MIB = 1024**2
FREE_BYTES_MIN, FREE_BYTES_FEW = 100 * MIB, 2048 * MIB
FREE_SHARE_FEW = 0.05
FREE_FILES_MIN = 1_000
OTHER_CONNECTIONS, OWN_FILES, FILES_A_WORKER = 100, 64, 6


@attrs.frozen
class Disk:
    """Where something of ours lies. Numbers of files are 0 where the file system has no limit."""

    path: str
    what: str
    free_bytes: int
    whole_bytes: int
    free_files: int
    whole_files: int


@attrs.frozen
class GivenFile:
    """A file that we are given. `key`: the setting that names it."""

    path: str
    key: str
    mode: int
    is_secret: bool


def judge_disk(disk: Disk) -> list[Finding]:
    name, free = "disk", disk.free_bytes
    where = f"{disk.path} ({disk.what})"
    said = f"{where}: {count_text(free // MIB)} of {count_text(disk.whole_bytes // MIB)} MiB free"
    advice = "make room: a store that is full takes no job"
    if free < FREE_BYTES_MIN:
        return [fail(name, said, f"{FREE_BYTES_MIN // MIB} MiB at least", advice)]
    if disk.whole_files and disk.free_files < FREE_FILES_MIN:
        said = f"{where}: {count_text(disk.free_files)} files (inodes) left"
        return [fail(name, said, f"{count_text(FREE_FILES_MIN)} at least", advice)]
    if free < FREE_BYTES_FEW and free < FREE_SHARE_FEW * disk.whole_bytes:
        return [warn(name, said, f"{FREE_BYTES_FEW // MIB} MiB, or 5 %", advice)]
    return [ok(name, said)]


def judge_open_files(limit: int, settings: Settings, whose: str) -> list[Finding]:
    """`limit`: how many files a process may have open; a connection counts as one."""
    wanted = files_wanted(settings)
    name, said = "open files", f"{whose} may have {count_text(limit)} open"
    if limit >= wanted:
        return [ok(name, said)]
    advice = "LimitNOFILE= in the unit, or ulimit -n; or fewer workers or readers"
    return [warn(name, said, f"{count_text(wanted)}, for this configuration", advice)]


def files_wanted(settings: Settings) -> int:
    """The most that a daemon with these settings opens."""
    tenants = len(settings.tenants)
    store = 2 * settings.store.pool_size + 4 + 3 * tenants
    web = OTHER_CONNECTIONS + settings.http.max_event_readers if settings.http.listen else 0
    work = settings.workers.max_count * FILES_A_WORKER
    return OWN_FILES + store + web + work + tenants * settings.webhooks.concurrency


def judge_permissions(files: Sequence[GivenFile]) -> list[Finding]:
    found = [fault for file in files for fault in _permission_faults(file)]
    return found or [ok("permissions", f"of {len(files)} files, none is open to everybody")]


def _permission_faults(file: GivenFile) -> Iterator[Finding]:
    name, mode = "permissions", f"mode {file.mode:04o}"
    if file.mode & stat.S_IWOTH:
        said = f"{file.path} ({file.key}) may be written by everybody ({mode})"
        yield fail(name, said, "by its owner alone", f"chmod o-w {file.path}")
    if file.is_secret and file.mode & stat.S_IROTH:
        said = f"{file.path} ({file.key}) holds a secret that everybody may read ({mode})"
        yield fail(name, said, "0600, or 0640", f"chmod o-r {file.path}")
