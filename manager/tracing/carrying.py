"""Brings the trace of whoever made a job to its attempt. A node that does not trace has none of
this: its claims do not read what they would not use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast
from uuid import UUID

import trio

from musterd.catalog.kinds import WorkKind
from musterd.config.faults import ConfigError, Fault
from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.leases import Claim, ClaimRequest, Ends, Exchange, Leases
from musterd.workers.claiming.held import Held
from musterd.workers.outcome import Outcome
from musterd.workers.progress import PhaseBook
from musterd.workers.toolbox import Toolbox
from musterd.workers.worker import attempt

READ_SECONDS = 1.0  # a job does not wait longer for its trace


class Visits(Protocol):
    """Hears of exchanges with the store. Returns at once and never raises."""

    def visited(self, tenant: str, began_ns: int, ends: Ends, claims: list[Claim]) -> None:
        """It wrote these ends and brought these claims."""
        ...

    def failed(self, tenant: str, began_ns: int, ends: Ends, error: Exception) -> None:
        """It is not known to have written these ends."""
        ...


def not_usable(exporter: str, wanted: str) -> ConfigError:
    found = f'"{exporter}"'
    return ConfigError([Fault("settings", key="tracing.exporter", found=found, wanted=wanted)])


def make_tracing(exporter: str, node: str) -> Tracing | None:
    """As `tracing.exporter` says. OpenTelemetry is imported only where it is to make spans. Raises
    ConfigError where that cannot be.
    """
    if exporter == "":
        return None
    if exporter == "none":
        return Tracing()
    try:
        from musterd.manager.tracing.spans import make_spans  # noqa: PLC0415 - an extra, and costly to import
    except ImportError:
        raise not_usable(exporter, "OpenTelemetry: pip install 'musterd[otel]'") from None
    return make_spans(exporter, node)


class Tracing:
    """Carries traces, and makes no spans."""

    visits: Visits | None = None

    def leases(self, engine: Engine, tenant: str, wall_clock: Callable[[], float]) -> Leases:
        """Those of the engine; its claims come with their traces."""
        return cast(Leases, CarriedLeases(engine, tenant, wall_clock, self.visits))

    async def attempt(
        self, held: Held, kind: WorkKind, box: Toolbox, phases: PhaseBook
    ) -> Outcome | None:
        return await attempt(held, kind, box, phases)

    def close(self) -> None:
        """What is not yet sent goes out. Blocks, for a few seconds at most."""


class CarriedLeases:
    """`Leases` of another engine. What is not about claims and ends goes straight there."""

    def __init__(
        self,
        engine: Engine,
        tenant: str,
        wall_clock: Callable[[], float],
        visits: Visits | None,
    ) -> None:
        self._engine, self._tenant = engine, tenant
        self._wall_clock, self._visits = wall_clock, visits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine.leases, name)

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        began_ns, visits = int(self._wall_clock() * 1e9), self._visits
        try:
            answer = await self._engine.leases.exchange(ends, claim)
        except StoreError as error:
            if visits is not None:
                visits.failed(self._tenant, began_ns, ends, error)
            raise
        if answer.claims:
            answer = answer._replace(claims=await self._with_traces(answer.claims))
        if visits is not None:
            visits.visited(self._tenant, began_ns, _without(ends, answer), answer.claims)
        return answer

    async def claims_under(self, token: UUID) -> list[Claim]:
        return await self._with_traces(await self._engine.leases.claims_under(token))

    async def _with_traces(self, claims: list[Claim]) -> list[Claim]:
        """Without, if the store does not say them in time: the claims are this node's already."""
        found = await self._read([claim.id for claim in claims])
        if not found:
            return claims
        return [
            claim if (trace := found.get(claim.id)) is None else claim._replace(traceparent=trace)
            for claim in claims
        ]

    async def _read(self, ids: list[int]) -> dict[int, str]:
        read: Callable[..., Awaitable[Any]] = self._engine.jobs.traceparents
        with trio.move_on_after(READ_SECONDS):
            try:
                return dict(await read(ids))
            except StoreError:  # the engine has logged it
                return {}
        return {}


def _without(ends: Ends, answer: Exchange) -> Ends:
    """The ends that the visit wrote."""
    odd = answer.rejected | answer.held_up
    return ends.of(set(ends.ids) - odd) if odd else ends
