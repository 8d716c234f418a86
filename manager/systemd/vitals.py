"""Whether the daemon does its work, as far as the watchdog is concerned. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from musterd.store.words import duration_text, one_line
from musterd.workers.leases import LeaseKeeper


@attrs.frozen
class Vitals:
    """How the renewals of one tenant's leases get on. `unrenewed_seconds`: how long none has come
    through although one was sent; None = the last one did, or none was ever due.
    """

    tenant: str
    lease_seconds: float
    unrenewed_seconds: float | None
    store_in_trouble: bool  # and everybody has been told


def why_unwell(tenants: Sequence[Vitals], late_seconds: float, late_max: float) -> str | None:
    """Says why the watchdog is not fed; None = it is.

    A store that is known to be away is weather, and starting anew does not help. Renewals that
    vanish without a word for longer than a lease are ours to end.
    """
    if late_seconds > late_max:
        return f"the event loop is {duration_text(late_seconds)} late"
    for one in tenants:
        if one.store_in_trouble or one.unrenewed_seconds is None:
            continue
        if one.unrenewed_seconds > one.lease_seconds:
            since = duration_text(one.unrenewed_seconds)
            return f"no lease of {one_line(one.tenant)} could be renewed for {since}"
    return None


def vitals_of(tenant: str, keeper: LeaseKeeper, trouble: str | None, now_local: float) -> Vitals:
    """`trouble` is what is known to ail the tenant's store."""
    since_local = keeper.unrenewed_since_local
    unrenewed_seconds = None if since_local is None else now_local - since_local
    return Vitals(tenant, keeper.plan.lease_seconds, unrenewed_seconds, trouble is not None)
