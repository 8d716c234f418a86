"""Programs for tests to start, and a look at who of them still lives."""

from __future__ import annotations

from pathlib import Path

import trio

LOOK_SECONDS = 0.005
LOOKS_MAX = 3_000


async def lines_in(path: Path, count: int) -> list[str]:
    """The lines of the file, once there are so many."""
    lines: list[str] = []
    for _ in range(LOOKS_MAX):
        lines = _lines(path)
        if len(lines) >= count:
            return lines
        await trio.sleep(LOOK_SECONDS)
    raise TimeoutError(f"{path}: {count} lines wanted, found {lines}")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def is_alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def has_gone(pid: int) -> None:
    for _ in range(LOOKS_MAX):
        if not is_alive(pid):
            return
        await trio.sleep(LOOK_SECONDS)
    raise TimeoutError(f"process {pid} still lives")
