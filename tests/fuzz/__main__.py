"""`make fuzz`: every target, exit 1 if one of them has a finding. `make fuzz ARGS="cron --inputs
1000000"` is one target alone; `--keep` puts what is found into the corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator

from tests.fuzz.daemons import DAEMONS
from tests.fuzz.hunting import Hunt, hunt
from tests.fuzz.target import CORPUS
from tests.fuzz.targets.every import PURE, inputs_of

INPUTS = 400_000  # of all targets that need nothing but the code


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join((*PURE, *DAEMONS)))
    parser.add_argument("--inputs", type=int, help="for each target that is named")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="put findings into the corpus")
    asked = parser.parse_args()
    if unknown := set(asked.targets) - {*PURE, *DAEMONS}:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    faults = 0
    for told, findings in _run(asked):
        print(told, flush=True)
        faults += findings
    print(f"{faults} findings" if faults else "no fault")
    sys.exit(1 if faults else 0)


def _run(asked: argparse.Namespace) -> Iterator[tuple[str, int]]:
    for name in asked.targets or (*PURE, *DAEMONS):
        if name in DAEMONS:
            lines, faults = DAEMONS[name](asked.inputs, asked.seed)
            yield "\n".join((*lines, *faults)), len(faults)
            continue
        target = PURE[name]
        found = hunt(target, asked.inputs or inputs_of(target, INPUTS), asked.seed)
        if asked.keep:
            _keep(found)
        yield found.told, len(found.findings)


def _keep(found: Hunt) -> None:
    folder = CORPUS / found.name
    folder.mkdir(parents=True, exist_ok=True)
    for one in found.findings:
        name = hashlib.sha256(one.whole).hexdigest()[:12]
        (folder / f"found-{name}").write_bytes(one.whole)


if __name__ == "__main__":
    main()
