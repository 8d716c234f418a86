"""The targets that need a daemon: its HTTP side."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.fuzz.described import try_all, validated
from tests.fuzz.raw import send_all
from tests.support.command import Daemon, Home
from tests.support.http_client import ask

TOLD = "501"  # the answer that the standard wants for a transfer coding that nobody knows
RAW_INPUTS = 30_000
EXAMPLES = 1_200  # for each operation

# What is to be told, and the faults. It is given how many inputs (None = as usual), and a seed.
Told: TypeAlias = tuple[Sequence[str], Sequence[str]]
Fuzz: TypeAlias = Callable[[Daemon, Path, int | None, int], Told]


def _raw(daemon: Daemon, _folder: Path, inputs: int | None, seed: int) -> Told:
    count = inputs or RAW_INPUTS
    statuses = send_all(daemon.address, count, seed)
    shown = ", ".join(f"{number:,} x {status}" for status, number in sorted(statuses.items()))
    faults = [f"raw: {status}" for status in statuses if status[0] == "5" and status != TOLD]
    return [f"raw: {count:,} inputs, {shown}"], faults


def _described(daemon: Daemon, folder: Path, inputs: int | None, seed: int) -> Told:
    faults = [found] if (found := validated(daemon.address, folder)) else []
    verdict = try_all(daemon.address, folder, inputs or EXAMPLES, seed)
    faults += [verdict.found] if verdict.found else []
    return [f"described: {verdict.inputs:,} inputs"], faults


def _with_daemon(fuzz: Fuzz) -> Callable[[int | None, int], Told]:
    def run(inputs: int | None, seed: int) -> Told:
        with tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder) / "state")
            with home.daemon("--set", "workers.max_count=4") as daemon:
                daemon.wait_until_ready()
                lines, faults = fuzz(daemon, Path(folder), inputs, seed)
                return lines, [*faults, *_harm(daemon)]

    return run


def _harm(daemon: Daemon) -> Sequence[str]:
    """What it did to the daemon, which is ended."""
    faults: list[str] = []
    if daemon.process.poll() is not None or ask(daemon.address, "/livez").status != 200:
        faults.append("the daemon is gone")
    faults += [line for line in daemon.log if re.search(r"Traceback|level=error", line)]
    daemon.process.terminate()
    if (code := daemon.end()) != 0:
        faults.append(f"the daemon ended with {code}")
    return faults


DAEMONS: Mapping[str, Callable[[int | None, int], Told]] = {
    "raw": _with_daemon(_raw),
    "described": _with_daemon(_described),
}
