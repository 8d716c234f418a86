"""Giving nodes on the stage another configuration."""

from typing import Any

from musterd.catalog.kinds import Catalog, WorkKind
from musterd.manager.reload_outcome import Outcome
from musterd.manager.reloading import Reloader
from tests.support.stage import Node, Stage, settings_with, until


def reloader_of(node: Node) -> Reloader:
    return node.daemon._reloader  # pyright: ignore[reportPrivateUsage] - as a signal would


async def reload(node: Node, *kinds: WorkKind, gone: str = "", **settings: object) -> Outcome:
    """With these kinds and settings in place of those of the start."""
    catalog = {**reloader_of(node).catalog, **{one.name: one for one in kinds}}
    catalog.pop(gone, None)
    fresh = settings_with(**settings), Catalog(catalog.values())
    return await reloader_of(node).reload(lambda: fresh)


async def running(stage: Stage, name: str, **options: Any) -> int:
    job_id = await stage.put_one(name, **options)
    await until(lambda: job_id in stage.running_now())
    return job_id
