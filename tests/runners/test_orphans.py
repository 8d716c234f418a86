"""How orphans are told from other children, by each of the two ways."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Generator

import pytest

from musterd.workers.runners import child, launcher, orphans

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans down")


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def test_all_write_the_same_tag() -> None:
    """Children begin without the module that reads it."""
    assert orphans.TAG_FIRST == child.TAG_FIRST == launcher.TAG_FIRST


def test_all_processes_say_who_their_parent_is(sleeper: subprocess.Popen[bytes]) -> None:
    """What is read where the kernel keeps no lists of children."""
    assert sleeper.pid in orphans.children_by_parent()[os.getpid()]
    if os.path.exists("/proc/thread-self/children"):  # noqa: PTH110 - a file of the kernel
        assert sleeper.pid in orphans.children_of(os.getpid())


def test_a_limit_of_another_user_is_read_as_text(sleeper: subprocess.Popen[bytes]) -> None:
    for tag in (resource.RLIM_INFINITY, orphans.TAG_FIRST + 7):
        resource.prlimit(sleeper.pid, resource.RLIMIT_RTTIME, (tag, tag))
        assert orphans.limit_in_text(sleeper.pid) == orphans.limit_of(sleeper.pid) == tag
    assert orphans.limit_in_text(2**22 + 1) is None


async def test_a_child_of_our_own_is_no_orphan(sleeper: subprocess.Popen[bytes]) -> None:
    assert await orphans.end_orphans() == 0
    tag = orphans.TAG_FIRST + sleeper.pid
    resource.prlimit(sleeper.pid, resource.RLIMIT_RTTIME, (tag, tag))
    assert await orphans.end_orphans() == 0
    assert sleeper.poll() is None
