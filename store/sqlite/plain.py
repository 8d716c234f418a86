"""Plain successes, written together: a few statements for all of them, and while those run the
interpreter is free for the daemon's loop. Part of a write transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from musterd.store.leases import Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.sqlite import rows
from musterd.store.sqlite.job_events import About, Held, JobEvents, call_out, record_start

SUCCEEDED = "job.succeeded"
NOTHING = (None,) * 5
TOGETHER_MIN = 4  # below this, one by one is as quick


def split(ended: Sequence[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """Those that `settle_plain` may write, and the others."""
    plain = [one for one in ended if _is_plain(one)]
    if len(plain) < TOGETHER_MIN or len({one.id for one in plain}) < len(plain):
        return [], list(ended)
    return plain, [one for one in ended if not _is_plain(one)]


def settle_plain(events: JobEvents, ended: Sequence[Settlement], now_local: float) -> set[int]:
    """Ends these jobs as succeeded, and tells it. Gives the ids of those whose lease is lost, about
    which nothing was written.
    """
    database = events.database
    endings = {one.id: _ending(one, now_local, events.now) for one in ended}
    wanted = {"ended": json.dumps(list(endings.values()))}
    jobs = [Held._make(row) for row in database.rows("held_many", wanted)]
    database.execute("settle_plain", wanted)
    for job in jobs:
        _, _, worker, started_at, _, _ = endings.pop(job.id)
        if job.state == JobState.ASSIGNED and started_at is not None:
            record_start(events, job, worker)
        about = About(*job[:4])
        events.record(SUCCEEDED, about)
        call_out(events, about, SUCCEEDED, job.webhook)
    return set(endings)


def _ending(
    one: Settlement, now_local: float, now: int
) -> tuple[int, str, int | None, int | None, int | None, str | None]:
    started_at = rows.at(one.started_local, now_local, now)
    finished_at = rows.at(one.ended_local, now_local, now)
    return one.id, one.token.hex, one.worker, started_at, finished_at, one.result


def _is_plain(one: Settlement) -> bool:
    """What has only a result, of a kind that crosses as it is."""
    return (
        one.state is JobState.SUCCEEDED
        and one.outcome is AttemptOutcome.SUCCEEDED
        and (one.result is None or one.result.isascii())
        and not one.forgive
        and (one.delay_seconds, one.error, one.reason, one.log, one.spent) == NOTHING
        and one.percent is None
        and one.phase is None
    )
