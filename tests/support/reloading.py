"""Giving nodes on the stage another configuration."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import trio
from trio.testing import MockClock

from musterd.catalog.kinds import Catalog, WorkKind
from musterd.manager.reload.outcome import ReloadOutcome
from musterd.manager.reload.reloader import Reloader
from tests.support.stage import Node, Stage, settings_with, until


def reloader_of(node: Node) -> Reloader:
    return node.daemon._reloader  # pyright: ignore[reportPrivateUsage] - as a signal would


async def reload(node: Node, *kinds: WorkKind, gone: str = "", **settings: object) -> ReloadOutcome:
    """With these kinds and settings in place of those of the start."""
    catalog = {**reloader_of(node).catalog, **{one.name: one for one in kinds}}
    catalog.pop(gone, None)
    fresh = settings_with(**settings), Catalog(catalog.values())
    with standing_clock():
        return await reloader_of(node).reload(lambda: fresh)


@contextmanager
def standing_clock() -> Generator[None, None, None]:
    """A reload reads in threads, for whom a clock that jumps would not wait."""
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    before, clock.autojump_threshold = clock.autojump_threshold, math.inf
    try:
        yield
    finally:
        clock.autojump_threshold = before


async def running(stage: Stage, name: str, **options: Any) -> int:
    job_id = await stage.put_one(name, **options)
    await until(lambda: job_id in stage.running_now())
    return job_id
