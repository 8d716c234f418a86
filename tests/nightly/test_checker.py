"""The checker keeps up with a long run."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from tests.checker.examples.bulk import bulk
from tests.checker.verdict import judge

JOBS = 53_000
LINES_MIN = 1_000_000
SECONDS_MAX = 300.0  # an idle core of 2026 needs 15


def test_a_million_lines_are_judged_in_time(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in bulk(JOBS, commits=False))
    start = time.process_time()
    with path.open() as lines:
        judgement = judge(lines)
    took = time.process_time() - start
    logging.getLogger(__name__).info("%s lines in %.1f s", judgement.lines, took)
    assert judgement.lines >= LINES_MIN
    assert judgement.violated == set()
    assert took < SECONDS_MAX
