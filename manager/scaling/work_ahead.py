"""Asks a store how much work there is for nodes, whatever nodes are there."""

from __future__ import annotations

from musterd.config.settings import Settings
from musterd.manager.scaling.nodes import wished_workers, workers_desired
from musterd.store.engine import Engine

NODE_HORIZON_SECONDS = 30.0  # what becomes due within it is work: a new node takes as long to start


async def ask_workers_desired(engine: Engine, settings: Settings) -> int:
    """Workers for all of it. `settings`: of the tenant whose store it is."""
    policy = settings.scaling.policy
    work = await engine.queue.work_ahead(NODE_HORIZON_SECONDS)
    is_asked = work and policy == "latency"
    wished = wished_workers(await engine.nodes.all()) if is_asked else None
    return workers_desired(work, wished, policy, settings.limits.max_running or None)
