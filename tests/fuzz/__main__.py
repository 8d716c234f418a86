"""`make fuzz`: some 50,000 inputs; exit 1 if one of them got a 5xx or broke what is described."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from tests.fuzz.described import try_all, validated
from tests.fuzz.raw import send_all
from tests.support.command import Daemon, Home
from tests.support.http_client import ask

TOLD = "501"  # the answer that the standard wants for a transfer coding that nobody knows


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--raw", type=int, default=30_000, help="requests with bytes changed")
    parser.add_argument("--examples", type=int, default=1200, help="inputs for each operation")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        with home.daemon("--set", "workers.max_count=4") as daemon:
            daemon.wait_until_ready()
            faults = _fuzz(daemon, Path(folder), asked)
            daemon.process.terminate()
            if (code := daemon.end()) != 0:
                faults.append(f"the daemon ended with {code}")
    print("\n".join(faults) or "no fault")
    sys.exit(1 if faults else 0)


def _fuzz(daemon: Daemon, folder: Path, asked: argparse.Namespace) -> list[str]:
    faults = [found] if (found := validated(daemon.address, folder)) else []
    statuses = send_all(daemon.address, asked.raw, asked.seed)
    shown = ", ".join(f"{count:,} x {status}" for status, count in sorted(statuses.items()))
    print(f"{asked.raw:,} raw requests: {shown}", flush=True)
    faults += [f"raw: {status}" for status in statuses if status.startswith("5") and status != TOLD]
    verdict = try_all(daemon.address, folder, asked.examples, asked.seed)
    print(f"{verdict.inputs:,} described ones", flush=True)
    faults += [verdict.found] if verdict.found else []
    if daemon.process.poll() is not None or ask(daemon.address, "/livez").status != 200:
        faults.append("the daemon is gone")
    faults += [line for line in daemon.log if re.search(r"Traceback|level=error", line)]
    return faults


if __name__ == "__main__":
    main()
