"""A daemon looks for garbage seldom."""

import subprocess
import sys

ASKED = """
import gc
from musterd.manager.node.process import YOUNG_MAX, collect_seldom
made_before = [[] for _ in range(5_000)]
collect_seldom()
assert gc.get_freeze_count() > len(made_before)
assert gc.get_threshold()[0] == YOUNG_MAX
looks = gc.get_stats()[0]["collections"]
made_since = [[] for _ in range(YOUNG_MAX - 5_000)]
assert gc.get_stats()[0]["collections"] == looks
made_since += [[] for _ in range(10_000)]
assert gc.get_stats()[0]["collections"] == looks + 1
"""


def test_two_batches_of_jobs_come_and_go_between_two_looks() -> None:
    """In a process of its own: it is set for a whole process."""
    subprocess.run([sys.executable, "-c", ASKED], check=True)
