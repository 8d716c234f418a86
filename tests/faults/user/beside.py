"""The same for the daemon's own loop: apart, because a child need not know Trio."""

from __future__ import annotations

import trio

from musterd import JobContext
from tests.faults.user.witness import STEP_SECONDS, conclude, digest, ended, step, steps_of, tell


async def beside(job: JobContext) -> dict[str, int]:
    tell("begin", job, digest=digest(job.payload))
    try:
        for _ in range(steps_of(job)):
            await trio.sleep(STEP_SECONDS)
            step(job)
        conclude(job)
    except BaseException as error:
        ended(job, error)
        raise
    ended(job, None)
    return {"attempt": job.attempt}
