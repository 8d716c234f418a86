"""The store that answers at once answers as PostgreSQL does."""

from __future__ import annotations

from uuid import UUID

import trio
from trio.testing import MockClock

from musterd.store.leases import Claim, ClaimRequest, Ends
from tests.bench.hot import Endless


def test_the_endless_queue_gives_claims_for_workers_and_ahead() -> None:
    claims = trio.run(_claims, 3, clock=MockClock(autojump_threshold=0))
    assert [(one.id, one.kind, one.worker) for one in claims] == [
        (1, "noop", 7), (2, "noop", None), (3, "noop", None)
    ]  # fmt: skip


async def _claims(batch: int) -> list[Claim]:
    request = ClaimRequest(UUID(int=1), "hot", (7,), batch - 1, 30.0)
    return (await Endless().exchange(Ends(), request)).claims
