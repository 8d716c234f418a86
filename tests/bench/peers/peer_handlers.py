"""The handlers that all contestants share: each job appends one line, in one write."""

import time
from importlib import import_module
from typing import Any

import trio

from musterd import JobContext

common: Any = import_module("common")  # the peers' own: their benchmark sets PYTHONPATH


async def noop(job: JobContext) -> None:  # noqa: ASYNC124  # on the loop, as the kind says
    common.noop(int(job.payload["i"]))


async def sleep(job: JobContext) -> None:
    began = time.time()
    await trio.sleep(0.01)
    common.rec(int(job.payload["i"]), began, time.time())
