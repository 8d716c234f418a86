"""Whose a process is, where several campaigns run on one machine."""

from __future__ import annotations

import os
import subprocess

from tests.faults.fleet import RUN, marks_of, tagged


def test_a_node_has_no_process_of_a_node_of_another_run() -> None:
    """Else it would freeze them, and complain of them when it ends."""
    mine, theirs = (marks_of(f"{os.getpid()}-{run}", "n001") for run in ("mine", "theirs"))
    commands = [
        subprocess.Popen(["sleep", "60"], env=os.environ | marks) for marks in (mine, theirs)
    ]
    try:
        (own, other) = (command.pid for command in commands)
        assert tagged(mine) == [own]
        assert tagged(theirs) == [other]
        assert tagged({RUN: mine[RUN]}) == [own]
        assert tagged(marks_of(mine[RUN], "n002")) == []
    finally:
        for command in commands:
            command.kill()
            command.wait()
