"""The end of a node whose work goes on though it was dismissed: waited for within a bound, then
left behind with the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

import trio

from musterd.manager.log import event, tenant_log
from musterd.manager.tenancy.tenancy import Tenancy

GRACE_MARGIN_SECONDS = 2.0  # from KILL to the end of a child's attempt


async def abandon_late(
    tenancies: Collection[Tenancy],
    abandon_seconds: float,
    log: logging.Logger,
    end_process: Callable[[], None],
) -> None:
    """Once all crews are dismissed, waits so long for those that stay, and for the grace of each
    one's work before that. Then all else is brought to its end as ever, and the process with it:
    that alone ends such work. Its leases are kept up to that moment and run out after it, so that
    nothing runs twice at a time.
    """
    for tenancy in tenancies:
        await tenancy.dismissed.wait()
    await trio.sleep(_grace_seconds(tenancies) + abandon_seconds)
    stubborn = [tenancy for tenancy in tenancies if tenancy.held()]
    if not stubborn:
        return  # the last one is on its way out
    for tenancy in stubborn:
        _tell(tenancy, log)
    async with trio.open_nursery() as nursery:
        for tenancy in stubborn:
            nursery.start_soon(tenancy.wind_up)
        for tenancy in tenancies:
            if tenancy not in stubborn:
                await tenancy.ended.wait()
    end_process()


def _grace_seconds(tenancies: Collection[Tenancy]) -> float:
    """The longest that any of the work left may take to stop."""
    left = [held.grace_seconds for tenancy in tenancies for held in tenancy.held()]
    return max(left) + GRACE_MARGIN_SECONDS if left else 0.0


def _tell(tenancy: Tenancy, log: logging.Logger) -> None:
    log_of_tenant = tenant_log(log, tenancy.name)
    for held in tenancy.held():
        claim = held.claim
        fields = {"job_id": claim.id, "kind": claim.kind, "attempt": claim.attempt}
        event(log_of_tenant, logging.ERROR, "job abandoned, its lease runs out", **fields)
