"""The handler of design 0: work that spends tokens, and stops once its budget is gone."""

import time
from typing import Any

from musterd import JobContext


def call(job: JobContext) -> dict[str, Any]:
    """Spends what the payload says, in steps of a hundred tokens."""
    spent = 0
    while spent < job.payload.get("tokens", 0):
        job.spend(tokens=100)
        spent += 100
        time.sleep(job.payload.get("pause_seconds", 0))
    return {"tokens": spent}
