"""The phase handlers of design 2: each reports progress, and reads what earlier phases returned."""

from typing import Any

from musterd import JobContext


def download(job: JobContext) -> dict[str, Any]:
    job.progress(50)  # of three phases: 17 overall
    return {"file": "a.mp4"}


def process(job: JobContext) -> dict[str, Any]:
    job.progress(25)  # 42
    return {"frames_of": job.phase_result("download")["file"]}


def upload(job: JobContext) -> dict[str, Any]:
    job.progress(80)  # 93
    return {"sent": sorted(job.phase_results())}
