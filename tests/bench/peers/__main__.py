"""`make bench-peers PEERS_FOLDER=…`: the peers' own benchmark with musterd among the contestants.

`PEERS` (names, by commas), `REPS` and `PEERS_HOME` go to it as they are.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

DRIVER = Path(__file__).with_name("driver.py")
CONTESTANTS = "musterd,graphile-worker-fast,pg-boss,pgqueuer"
LEFT = "select count(*) from musterd.jobs where state in ('queued', 'assigned', 'running')"


def contestant() -> dict[str, object]:
    command = [sys.executable, str(DRIVER)]
    return {"cmd": command, "store": "pg", "N": 100_000, "conc": 100, "left": LEFT}


def main(folder: str) -> None:
    program = Path(folder) / "run_all.sh"
    if not program.is_file():
        sys.exit(f"PEERS_FOLDER: found no run_all.sh in {folder!r}: want the folder of the peers")
    os.environ["PEERS_EXTRA"] = json.dumps({"musterd": contestant()})
    os.environ.setdefault("PEERS", CONTESTANTS)
    os.execv(program, [str(program), *sys.argv[2:]])


main(sys.argv[1] if len(sys.argv) > 1 else "")
