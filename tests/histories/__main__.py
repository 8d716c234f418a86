"""`make histories`: so many short histories of PostgreSQL, each judged by the checker. Exit 1 if
one is violated; its history is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.histories.batch import Tally, results

HOLDS, VIOLATED = 0, 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--stop-at-first", action="store_true", help="end with the first violation")
    parser.add_argument("--json", action="store_true", help="one object a line for each history")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "musterd-histories",
        help="where the histories of failures go",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    tally, began = Tally(options.folder), time.monotonic()
    seeds = range(options.first, options.first + options.count)
    for result in results(seeds, min(options.jobs, options.count)):
        tally.add(result)
        if options.json:
            _say(json.dumps({"seed": result.seed, "violated": result.violated}))
        elif result.violated:
            _say(tally.told(result))
        if result.violated and options.stop_at_first:
            break
    a_minute = tally.histories * 60 / (time.monotonic() - began)
    _say(f"{tally.summary()}; {a_minute:,.0f} histories a minute")
    return VIOLATED if tally.failed else HOLDS


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
