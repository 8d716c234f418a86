"""Runs cases, prints a row for each size, and keeps what was seen as lines of JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.bench.growth.cases import CASES, Bench
from tests.bench.growth.figures import Row
from tests.bench.running import ROOT
from tests.support.postgres_server import PostgresServer


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth")
    parser.add_argument("cases", nargs="*", default=[], help=f"of {', '.join(CASES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of jobs")
    parser.add_argument("--deepest", type=int, default=1_000_000, help="jobs in the deepest queue")
    parser.add_argument("--rounds", type=int, default=3, help="of each size, in turns")
    parser.add_argument("--json", type=Path, help="a file that the rows are added to")
    asked = parser.parse_args(words)
    if unknown := set(asked.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    began = time.monotonic()
    with PostgresServer(durable=True, shared_buffers="1GB", max_wal_size="4GB") as server:
        bench = Bench(server, asked.scale, asked.rounds, asked.deepest)
        for name in asked.cases or CASES:
            _run(bench, name, asked.json)
    print(f"{time.monotonic() - began:.0f} s")


def _run(bench: Bench, name: str, path: Path | None) -> None:
    print(f"\n{name:<40} {'jobs/s':>8} {'of 1st':>7} {'daemon':>9} {'server':>9}", flush=True)
    first: Row | None = None
    how = circumstances(bench.scale)
    for row in CASES[name](bench):
        first = first or row
        print(line(row, first), flush=True)
        if path is not None:
            with path.open("a") as file:
                file.write(json.dumps({**how, **attrs.asdict(row)}) + "\n")


def line(row: Row, first: Row) -> str:
    shown = f"{row.label:<40} {row.rate:>8,.0f} {row.rate / first.rate:>7.2f}"
    shown += f" {row.daemon_microseconds:>6.1f} us {row.server_microseconds:>6.1f} us"
    shown += f" = {row.microseconds / first.microseconds:.2f}"
    if row.ideal is not None:
        shown += f"  {row.rate / row.ideal:.3f} of what waiting allows"
    if row.claim_milliseconds is not None and first.claim_milliseconds is not None:
        ratio = row.claim_milliseconds / first.claim_milliseconds
        shown += f"  a claim {row.claim_milliseconds:.2f} ms = {ratio:.2f}"
    if row.log_bytes is not None and first.log_bytes is not None:
        shown += f"  log {row.log_bytes:,.0f} B = {row.log_bytes / first.log_bytes:.2f}"
    if row.mebibytes is not None and first.mebibytes is not None:
        shown += f"  {row.mebibytes:,.0f} MiB = {row.mebibytes / first.mebibytes:.2f}"
    return shown


def circumstances(scale: float) -> dict[str, object]:
    return {
        "run": time.time_ns(),
        "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": _said("git", "rev-parse", "--short", "HEAD"),
        "machine": f"{os.cpu_count()} cores, {_processor()}",
        "python": platform.python_version(),
        "scale": scale,
    }


def _said(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    try:
        known = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [one.partition(":")[2].strip() for one in known if one.startswith("model name")]
    return models[0] if models else platform.processor()
