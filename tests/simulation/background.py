"""What daemons do beside their jobs, where a seed wants it: they fire schedules, tell receivers of the
end of jobs, and delete what is old. Drawn by dice of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from musterd.config.settings import Settings
from musterd.store.lifecycle import ENDED

Drawn = tuple[float, str, dict[str, Any]]

SCHEDULE = "tick"
RECEIVERS = ("good", "good", "flaky", "slow", "deaf", "leaving")
RETRY_SECONDS = 2.0  # the longest pause between two tries to tell a receiver
TELL_SECONDS = 3.0  # how long one try may take


def draw_knobs(dice: random.Random) -> dict[str, Any]:
    knobs: dict[str, Any] = {
        "webhooks__timeout_seconds": TELL_SECONDS,
        "webhooks__retry_base_seconds": 0.5,
        "webhooks__retry_max_seconds": RETRY_SECONDS,
        "webhooks__give_up_after_hours": dice.choice((0.001, 0.01, 1)),
        "webhooks__concurrency": dice.choice((1, 8)),
    }
    if dice.random() < 0.3:
        knobs |= {
            f"schedules__{SCHEDULE}__kind": "brief",
            f"schedules__{SCHEDULE}__every_seconds": dice.choice((1, 2, 5)),
            f"schedules__{SCHEDULE}__missed": dice.choice(("skip", "once", "all")),
            f"schedules__{SCHEDULE}__overlap": dice.choice(("allow", "skip")),
        }
    if dice.random() < 0.3:
        stale = dice.choice((0, 0.0005, 0.001))
        knobs |= {
            "retention__stale_after_hours": stale,
            "retention__delete_after_hours": max(stale, dice.choice((0.001, 0.003))),
            "retention__interval_seconds": 1,
            "retention__batch": dice.choice((1, 500)),
        }
    return knobs


def draw_mix(dice: random.Random) -> str | None:
    """A kind of which this seed wants most jobs; None = all kinds alike."""
    return dice.choice((None, None, "pipeline", "pipeline", "capped", "once", "rest"))


def with_mix(kind: str | None, deeds: Iterable[Drawn]) -> list[Drawn]:
    """The same, with that kind in the place of plain jobs."""
    return [
        (at, what, {**values, "jobs": [_mixed(kind, job) for job in values["jobs"]]})
        if what == "enqueue"
        else (at, what, values)
        for at, what, values in deeds
    ]


def _mixed(kind: str | None, job: Mapping[str, Any]) -> dict[str, Any]:
    return {**job, "kind": kind} if kind and job["kind"] == "plain" else dict(job)


def with_receivers(dice: random.Random, deeds: Iterable[Drawn]) -> list[Drawn]:
    """The same, with a webhook at some of the jobs."""
    share = dice.choice((0.0, 0.2, 0.6))
    done: list[Drawn] = []
    for at, what, values in deeds:
        if what == "enqueue":
            jobs = [_told(dice, job) if dice.random() < share else job for job in values["jobs"]]
            done.append((at, what, {**values, "jobs": jobs}))
        else:
            done.append((at, what, values))
    return done


def _told(dice: random.Random, job: Mapping[str, Any]) -> dict[str, Any]:
    return {**job, "webhook": f"https://{dice.choice(RECEIVERS)}.example/ends"}


def header_of(settings: Settings) -> dict[str, object]:
    """What the checker has to know of it."""
    hours = settings.retention.delete_after_hours
    header: dict[str, object] = {"schedules": bool(settings.schedules)}
    if hours < 1:  # else nothing gets so old
        header["retention"] = {state.value: hours * 3600 for state in sorted(ENDED)}
    return header
