"""What the machine has left, as Linux tells it: free memory, also that of our control group, and
pressure, the share of the last ten seconds in which something waited (PSI). Reads a few small
files, which do not block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from musterd.manager.scaling.guard import Machine

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB", re.MULTILINE)
_INACTIVE = re.compile(r"^inactive_file (\d+)$", re.MULTILINE)
_SOME = re.compile(r"^some avg10=([0-9.]+)", re.MULTILINE)
_OWN_GROUP = re.compile(r"^0::(/.*)$", re.MULTILINE)


def read_machine(proc: Path = PROC, cgroups: Path = CGROUPS) -> Machine:
    """What cannot be read is None: another system, an old kernel, PSI that is switched off."""
    groups = list(_groups(proc, cgroups))
    free = [_available(proc), *(_headroom(group) for group in groups)]
    own = groups[:1]  # of those above it are others too
    return Machine(
        free_memory_bytes=min((one for one in free if one is not None), default=None),
        memory_pressure_percent=_pressure("memory", proc, own),
        cpu_pressure_percent=_pressure("cpu", proc, own),
    )


def _groups(proc: Path, cgroups: Path) -> Iterator[Path]:
    """Our control group and those above it, as far as they are of version 2."""
    found = _OWN_GROUP.search(_text(proc / "self" / "cgroup"))
    if found is None or not (cgroups / "cgroup.controllers").is_file():
        return
    group = cgroups / found[1].strip("/")
    while group != cgroups and cgroups in group.parents:
        yield group
        group = group.parent
    yield cgroups  # in a container its own group stands here


def _available(proc: Path) -> int | None:
    found = _AVAILABLE.search(_text(proc / "meminfo"))
    return None if found is None else int(found[1]) * 1024


def _headroom(group: Path) -> int | None:
    """What a group may still take: what it only keeps of files would be given up for it."""
    most, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
    if not most.isdecimal() or not used.isdecimal():
        return None
    inactive = _INACTIVE.search(_text(group / "memory.stat"))
    return max(0, int(most) - int(used) + (0 if inactive is None else int(inactive[1])))


def _pressure(what: str, proc: Path, groups: list[Path]) -> float | None:
    """The larger of the machine's and our group's."""
    files = [proc / "pressure" / what, *(group / f"{what}.pressure" for group in groups)]
    found = [_SOME.search(_text(file)) for file in files]
    return max((float(one[1]) for one in found if one is not None), default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
