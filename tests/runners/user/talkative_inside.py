"""Handlers inside the daemon that speak by `logging`."""

import logging

import trio

from musterd import JobContext

log = logging.getLogger("shop.orders")


def logs(job: JobContext) -> None:
    log.info("in the daemon")
    log.debug("not told")
    job.log("by job.log")


async def async_logs(job: JobContext) -> None:
    logs(job)

    async def more() -> None:  # noqa: ASYNC124 - as users write them
        log.error("in another task")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(more)
        await trio.sleep(0.001)
