"""Handlers that speak by `logging`."""

import logging
import sys

from musterd import JobContext

log = logging.getLogger("shop.orders")


def speaks(job: JobContext) -> None:
    print("printed first")
    log.info("order %d", 7)
    job.log("by job.log")
    log.debug("not told")
    print("to stderr", file=sys.stderr)
    log.error("failed")


def sets_up_its_own(_job: JobContext) -> None:
    logging.basicConfig(format="own: %(message)s", level=logging.DEBUG, stream=sys.stdout)
    log.debug("in its own way")
