"""The same for the daemon's own loop: apart, because a child need not know Trio."""

from __future__ import annotations

import trio

from musterd import JobContext
from tests.faults.user.witness import STEP_SECONDS, step, steps_of, witnessed


async def beside(job: JobContext) -> dict[str, int]:
    with witnessed(job):
        for _ in range(steps_of(job)):
            await trio.sleep(STEP_SECONDS)
            step(job)
    return {"attempt": job.attempt}
