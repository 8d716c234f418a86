"""The retention callbacks of design 2."""

from musterd import JobContext


def stale(job: JobContext) -> None:
    job.log(f"stale: job {job.payload['data']['id']}")


def deleted(job: JobContext) -> None:
    job.log(f"deleted: job {job.payload['data']['id']}")
