"""Kinds that look around where the unit has put them, and their handlers."""

HANDLERS = """
import os
import pathlib
import socket
import time

def surroundings(job):
    inside = pathlib.Path("/proc/self/status").read_text()
    return {
        "user": os.getuid(),
        "new_privileges": "NoNewPrivs:\\t1" in inside,
        "notify": "NOTIFY_SOCKET" in os.environ,
        "writable": os.access("/etc", os.W_OK),
        "name": socket.getaddrinfo("localhost", 80)[0][4][0],
    }

async def blocks(job):
    time.sleep(600)
"""
KINDS = """
[kinds.surroundings]
python = "inside:surroundings"
[kinds.blocks]
python = "inside:blocks"
isolation = "task"
[kinds.program]
command = ["/bin/sh", "-c", "ulimit -n; cat"]
rlimits = { nofile = 64 }
[kinds.lasts]
duration_ms = 8000
"""
