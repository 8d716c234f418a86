"""A worker's life: take a claim from the desk, run it, hand its end back, until told to leave."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from musterd.catalog.kinds import Catalog, WorkKind
from musterd.config.live import LiveSettings
from musterd.store.leases import Verdict
from musterd.workers.attempt import attempt
from musterd.workers.claiming.desk import Desk, Seat
from musterd.workers.claiming.held import Held
from musterd.workers.outcome import (
    broken_kind,
    interrupted,
    judge,
    requested,
    unknown_kind,
)
from musterd.workers.phase_book import PhaseBook
from musterd.workers.progress import so_far
from musterd.workers.toolbox import Box

JOBS_A_TURN = 16  # jobs that never wait are done in a row before the other tasks get theirs


CLOSE_SECONDS = 10.0  # for ending what a worker keeps between jobs


@attrs.frozen
class WorkerDeps:
    """What a worker needs to know beyond its claim. It is asked for with each job, so that a reload
    reaches it.
    """

    catalog: Callable[[], Catalog]
    settings: LiveSettings
    make_box: Callable[[], Box]  # called once by each worker, for itself
    phases: PhaseBook


async def work(seat: Seat, desk: Desk, deps: WorkerDeps) -> None:
    """Returns when the seat was retired. Cancelled (dismissed) it gives its job back before it
    goes.
    """
    box = deps.make_box()
    try:
        with box.bounds.kept():
            await _serve_all(seat, desk, deps, box)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
            await box.close()


async def _serve_all(seat: Seat, desk: Desk, deps: WorkerDeps, box: Box) -> None:
    jobs = 0
    held = desk.take(seat)
    while held or (held := await desk.wait_for_claim(seat)):
        await _serve(seat, held, desk, deps, box)
        jobs += 1
        held = desk.take(seat) if jobs % JOBS_A_TURN else await desk.take_turns(seat)


async def _serve(seat: Seat, held: Held, desk: Desk, deps: WorkerDeps, box: Box) -> None:
    if held.trusted_until <= box.tools.boottime():
        # Its reply came late, or this process was stopped: by now the job may be another's.
        desk.lose(held)
        desk.drop(seat, held)
        return
    kind = deps.catalog().get(held.claim.kind)
    verdict = _without_work(held, kind)
    try:
        if verdict is None and kind is not None:
            if box.is_outdated:
                await box.renew()
            outcome = await attempt(held, kind, box, deps.phases)
            if outcome is not None and not held.lost:
                judging = held.judged_by or kind
                verdict = judge(
                    outcome, held.claim, judging, deps.settings.now.limits.max_error_bytes
                )
    except trio.Cancelled:
        if held.lost:
            desk.drop(seat, held)
        else:
            desk.settle(
                seat, held, so_far(held, interrupted(deps.settings.now.shutdown.interrupted))
            )
        raise
    if verdict is None:
        desk.drop(seat, held)
    else:
        desk.settle(seat, held, so_far(held, verdict))


def _without_work(held: Held, kind: WorkKind | None) -> Verdict | None:
    """The end of a job that is not to begin, or cannot; None = it can."""
    if held.request is not None:
        return requested(held.request)
    if kind is None:
        return unknown_kind(held.claim)
    if kind.broken is not None:
        return broken_kind(held.claim, kind.broken)
    return None
