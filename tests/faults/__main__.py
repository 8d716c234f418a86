"""`python -m tests.faults [--seed N] [--scale X] [--only KIND,…] [--folder DIR]`: one campaign, and
what the checker says of it.
"""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.faults import failover
from tests.faults.campaign import run
from tests.faults.sizes import Sizes


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="", help="kinds of faults, with commas between them")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--failover", choices=["lossy", "clean"], help="a campaign on two servers")
    options = parser.parse_args(words)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    sizes = Sizes().scaled(options.scale)
    if options.only:
        sizes = sizes.only(frozenset(options.only.split(",")))
    folder = options.folder or Path(tempfile.mkdtemp(prefix="musterd-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    if options.failover:
        found = failover.run(folder, options.seed, sizes, lossy=options.failover == "lossy")
    else:
        found = run(folder, options.seed, sizes)
    for line in (*found.lines, *found.complaints, found.how_to_judge_again):
        print(line)
    return 1 if found.complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
