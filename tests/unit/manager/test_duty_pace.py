"""How soon a duty is done again."""

import logging
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from musterd.manager.duties.duty import REST_SECONDS_MAX, RESTS, Duty, DutyRun, Tally, serve

INTERVAL_SECONDS = 1.0


class Deaf:
    def acquired(self, duties: Sequence[str]) -> None: ...

    def released(self, duties: Sequence[str], why: str) -> None: ...

    def ran(self, duty: str, run: DutyRun) -> None: ...


@pytest.mark.parametrize(
    ("run_seconds", "pause_seconds"),
    [(0.01, INTERVAL_SECONDS), (0.3, RESTS * 0.3), (4.0, REST_SECONDS_MAX)],
)
async def test_a_duty_that_has_become_dear_is_done_less_often(
    autojump_clock: MockClock, run_seconds: float, pause_seconds: float
) -> None:
    """As reaping does while somebody holds a snapshot, and entries of old leases cannot go."""
    del autojump_clock
    began: list[float] = []

    async def run() -> int:
        began.append(trio.current_time())
        await trio.sleep(run_seconds)
        return 0

    duty = Duty("reaping", run, lambda: INTERVAL_SECONDS)
    log = logging.getLogger("tests.duties")
    with trio.move_on_after(30.0):
        await serve(duty, Tally(), Deaf(), random.Random(1), log)
    pauses = [after - before - run_seconds for before, after in pairwise(began)]
    assert 0.8 * pause_seconds <= min(pauses) <= max(pauses) <= pause_seconds + 0.001
