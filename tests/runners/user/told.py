"""Functions that are told of stale and of deleted jobs."""

import json
import os
import time
from pathlib import Path

from musterd import Fatal, JobContext


def write(job: JobContext) -> None:
    line = {"kind": job.kind, "payload": job.payload, "fence": job.fence.id, "pid": os.getpid()}
    with Path(job.payload["data"]["file"]).open("a") as file:
        file.write(json.dumps(line) + "\n")


async def write_async(job: JobContext) -> None:  # noqa: ASYNC124 - as users write them
    write(job)


def refuse(_job: JobContext) -> None:
    raise Fatal("not this one")


def break_down(_job: JobContext) -> None:
    raise ZeroDivisionError("by nought")


def die(_job: JobContext) -> None:
    os._exit(3)


def hang(_job: JobContext) -> None:
    time.sleep(1_000)
