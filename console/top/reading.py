"""Looking at the store and at the daemon of this machine."""

from __future__ import annotations

from datetime import datetime

import trio

from musterd.catalog.kinds import Catalog
from musterd.catalog.lookup import budget_of
from musterd.config.settings import Settings
from musterd.console.ask import NodeSilent, ask_node
from musterd.console.exits import Complaint
from musterd.console.judging import decision_of
from musterd.console.top.sifting import Filter
from musterd.console.top.state import NodeSeen, Panel, StoreSeen
from musterd.store.engine import Engine
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.report import report_text
from musterd.store.why import why
from musterd.store.why_report import why_text

AWAY = (StoreUnavailable, StoreMisconfigured, Complaint)  # what the screen says, and goes on


async def look(engine: Engine, which: Filter) -> StoreSeen:
    """One look at all that the screen shows of the store; nothing of it grows with the queue."""
    board = await engine.board.jobs(which.wanted)
    counts = await engine.counts()
    nodes = await engine.nodes()
    return StoreSeen(trio.current_time(), board.now, counts, board.jobs, tuple(nodes))


async def ask(settings: Settings) -> NodeSeen:
    """What the daemon says. Never raises: that it is silent is an answer."""
    return await trio.to_thread.run_sync(_ask, settings, abandon_on_cancel=True)


async def why_panel(engine: Engine, job_id: int) -> Panel:
    seen = await engine.standing(job_id)
    if seen is None:
        return _gone(job_id)
    return Panel(f"why {job_id}", tuple(why_text(why(seen)).splitlines()))


async def details_panel(
    engine: Engine, job_id: int, now: datetime, catalog: Catalog | None
) -> Panel:
    record = await engine.job(job_id)
    if record is None:
        return _gone(job_id)
    budget = None if catalog is None else budget_of(catalog, record.kind)
    text = report_text(record, now, budget)
    return Panel(f"job {job_id}", tuple(text.splitlines()))


def _gone(job_id: int) -> Panel:
    return Panel(f"job {job_id}", (f"there is no job {job_id} any more",))


def _ask(settings: Settings) -> NodeSeen:
    path = f"?tenant={settings.tenant}"
    try:
        whole = ask_node(settings, f"/status{path}")
        decisions = ask_node(settings, f"/scaling{path}").get("decisions") or [None]
    except NodeSilent as silence:
        return NodeSeen(None, str(silence))
    return NodeSeen(whole, decision=decision_of(decisions[-1]))
