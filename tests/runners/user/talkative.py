"""Handlers that speak by `logging`."""

import logging
import os
import subprocess
import sys

from musterd import JobContext

log = logging.getLogger("shop.orders")


def speaks(job: JobContext) -> None:
    print("printed first")
    log.info("order %d", 7)
    job.log("by job.log", "error")
    log.debug("not told")
    print("to stderr", file=sys.stderr)
    log.critical("failed\nin two lines")


def starts_programs(_job: JobContext) -> None:
    subprocess.run(["/bin/sh", "-c", "echo by a program >&2"], check=True)
    os.write(2, b"to the descriptor\n")
    # An interpreter that ends without writing its buffers out.
    script = "import os; print('at once'); os._exit(0)"
    subprocess.run([sys.executable, "-c", script], check=True)


def sets_up_its_own(_job: JobContext) -> None:
    logging.basicConfig(format="own: %(message)s", level=logging.DEBUG, stream=sys.stdout)
    log.debug("in its own way")
