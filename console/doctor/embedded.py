"""Whether an embedded store's file is sound and in a good place: pure."""

from __future__ import annotations

import stat
from collections.abc import Sequence

from musterd.console.doctor.finding import Finding, fail, ok, warn
from musterd.store.health import File
from musterd.store.words import count_text

WAL_BYTES = 256 * 1024**2
MIB = 1024**2
MOUNT_POINT = 4  # the field of mountinfo
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre"})
PASSING = frozenset({"tmpfs", "ramfs"})


def judge_file(file: File) -> list[Finding]:
    name = "file"
    if file.fault is not None:
        said = f"{file.path} is damaged: {file.fault}"
        advice = "stop the daemon and restore a backup: see docs/running.md"
        return [fail(name, said, "a sound file", advice)]
    found: list[Finding] = []
    if file.journal_mode != "wal":
        said = f"journal mode {file.journal_mode}"
        found.append(fail(name, said, "wal", "keep the file on a local disk"))
    if file.wal_bytes > WAL_BYTES:
        said = f"{file.path}-wal has {_mib(file.wal_bytes)}: a reader never finishes"
        advice = "end the program that keeps the file open (lsof), or restart the daemon"
        found.append(warn(name, said, f"less than {_mib(WAL_BYTES)}", advice))
    if file.mode & (stat.S_IRWXG | stat.S_IRWXO):
        said = f"{file.path} is accessible to others (mode {file.mode:04o})"
        found.append(warn(name, said, "0600: it holds payloads", f"chmod 600 {file.path}"))
    if not found:
        whole = "sound" if file.checked_whole else "sound as far as checked"
        found.append(
            ok(
                name,
                f"{_mib(file.size_bytes)}, {whole}; SQLite {file.engine_version}, {_lock(file)}",
            )
        )
    return found


def judge_file_system(path: str, sort: str | None) -> list[Finding]:
    name = "file system"
    if sort is None:
        return [ok(name, "of unknown type")]
    if sort in REMOTE or sort.startswith("fuse."):
        advice = "move it to a local disk, or use PostgreSQL"
        return [fail(name, f"{path} is on {sort}, a network file system", "a local disk", advice)]
    if sort in PASSING:
        said = f"{path} is on {sort}, which is lost when the machine restarts"
        return [warn(name, said, "a disk", "set store.url or STATE_DIRECTORY")]
    if sort == "overlay":
        said = f"{path} is in the container's own layer, which is lost with the container"
        return [warn(name, said, "a volume", "mount a volume there")]
    return [ok(name, sort)]


def file_system_of(path: str, mounts: Sequence[str]) -> str | None:
    """The sort of the file system that `path` lies on, by the lines of /proc/self/mountinfo."""
    best, sort = "", None
    for line in mounts:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) <= MOUNT_POINT or not right:
            continue
        place = fields[MOUNT_POINT].replace("\\040", " ")
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, sort = place, right.split()[0]
    return sort


def _lock(file: File) -> str:
    if file.is_held is None:
        return "the holder of its lock is unknown"
    if not file.is_held:
        return "no daemon holds it"
    return f"process {file.holder} holds it" if file.holder else "a daemon holds it"


def _mib(count: int) -> str:
    return f"{count_text(-(-count // MIB))} MiB"
