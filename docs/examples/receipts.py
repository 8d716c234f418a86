"""What the jobs of both shops do."""

from musterd import JobContext


def send(job: JobContext) -> dict[str, str]:
    job.log(f"order {job.payload['order']}, attempt {job.attempt}")
    return {"sent_to": job.payload["customer"]}
