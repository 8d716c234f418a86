"""The handler of design 0: work that spends tokens, and stops once its budget is gone."""

from typing import Any

from musterd import JobContext


def call(job: JobContext) -> dict[str, Any]:
    """Spends what the payload says, in steps of a hundred tokens."""
    spent = 0
    while spent < job.payload.get("tokens", 0):
        job.spend(tokens=100)
        spent += 100
    return {"tokens": spent}
