"""How often Python looks for garbage that holds itself in a circle.

The objects of a job come and go by the thousand and hold nobody in a circle: looking through them
took a seventh of a busy daemon's time. What a daemon is made of stays until its end.
"""

from __future__ import annotations

import gc

# Objects made and not yet gone, until the next look: those of about two batches of jobs.
YOUNG_MAX = 20_000
YOUNG_LOOKS = 20  # before a look at what outlived them


def collect_seldom() -> None:
    """For a process that is a daemon, once all is made that stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, YOUNG_LOOKS, YOUNG_LOOKS)
