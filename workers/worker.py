"""A worker's life: take a claim from the desk, run it, hand its end back, until told to leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.workers.attempt import attempt
from musterd.workers.desk import Desk
from musterd.workers.held import Held
from musterd.workers.outcome import Verdict, interrupted, judge, unknown_kind
from musterd.workers.seat import Seat

JOBS_A_TURN = 4  # jobs that never wait are done in a row before the other tasks get theirs


@attrs.frozen
class Rules:
    """What a worker needs to know beyond its claim. The catalog is asked for each job, so that a
    reload reaches it.
    """

    catalog: Callable[[], Catalog]
    error_bytes_max: int
    interrupted: Literal["requeue", "pause"]


async def work(seat: Seat, desk: Desk, rules: Rules) -> None:
    """Returns when the seat was retired. Cancelled (dismissed) it gives its job back before it
    goes.
    """
    jobs = 0
    while (held := desk.take(seat) or await desk.wait_for_claim(seat)) is not None:
        await _serve(seat, held, desk, rules)
        jobs += 1
        if jobs % JOBS_A_TURN == 0:
            await trio.lowlevel.checkpoint()


async def _serve(seat: Seat, held: Held, desk: Desk, rules: Rules) -> None:
    try:
        verdict = await _verdict(held, rules)
    except trio.Cancelled:
        if held.lost:
            desk.drop(seat, held)
        else:
            desk.settle(seat, held, interrupted(rules.interrupted))
        raise
    if verdict is None:
        desk.drop(seat, held)
    else:
        desk.settle(seat, held, verdict)


async def _verdict(held: Held, rules: Rules) -> Verdict | None:
    kind = rules.catalog().get(held.claim.kind)
    if kind is None:
        return unknown_kind(held.claim)
    outcome = await attempt(held, kind)
    if outcome is None or held.lost:
        return None
    return judge(outcome, held.claim, kind, rules.error_bytes_max)
