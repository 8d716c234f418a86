"""What a seed wants beside its troubles, drawn by rng of its own: a favourite kind of jobs,
troubles that come together, business as usual once they are over, and whether it must do without
hints.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.simulation import users
from tests.simulation.troubles import TROUBLES
from tests.simulation.users import Drawn

HINTLESS = 0.15  # so many seeds
# What is worse when it befalls one node together with another of them.
TOGETHER = (
    *("line_cut", "freeze", "clock_skew", "slow_reply", "reply_lost", "late_apply"),
    *("slow_store", "suspend", "lossy_failover", "kill"),
)
WORST = (
    ("clock_skew", "line_cut", "clock_skew"),  # its clock is set while it cannot renew
    ("clock_step", "line_cut", "clock_step"),
    ("late_apply", "kill"),  # what it had sent comes when its jobs are others'
    ("late_apply", "line_cut"),
    ("slow_reply", "line_cut"),
    ("lossy_failover", "reload"),  # the store forgets that it has jobs
    ("freeze", "late_apply"),
)
STORM_SECONDS = 1.0  # from one of them to the next
BUSINESS_SECONDS = 6.0


def draw_hintless(rng: random.Random) -> bool:
    """Whether no hint ever arrives: what is to be found is found by looking."""
    return rng.random() < HINTLESS


def draw_favourite(rng: random.Random) -> str | None:
    """The kind of most jobs; None = all kinds alike."""
    return rng.choice((None, None, "pipeline", "pipeline", "capped", "once", "rest"))


def with_favourite(
    rng: random.Random, lease: float, kind: str | None, deeds: Iterable[Drawn]
) -> list[Drawn]:
    """The same, with that kind in the place of plain jobs; and in some seeds many of them take as
    long as their lease, or longer.
    """
    long_share = rng.choice((0.0, 0.3, 0.7))
    done: list[Drawn] = []
    for at, what, values in deeds:
        if what == "enqueue":
            jobs = [_mixed(kind, job) for job in values["jobs"]]
            jobs = [_perhaps_long(rng, lease, long_share, job) for job in jobs]
            done.append((at, what, {**values, "jobs": jobs}))
        else:
            done.append((at, what, values))
    return done


def _perhaps_long(
    rng: random.Random, lease: float, long_share: float, job: dict[str, Any]
) -> dict[str, Any]:
    seconds = lease * rng.uniform(0.5, 3.0)
    is_long = rng.random() < long_share and job["kind"] == "plain"
    return users.with_long_work(job, seconds) if is_long else job


def _mixed(kind: str | None, job: Mapping[str, Any]) -> dict[str, Any]:
    return {**job, "kind": kind} if kind and job["kind"] == "plain" else dict(job)


def draw_storms(
    rng: random.Random, seconds: float, nodes: Sequence[str], lease: float
) -> list[Drawn]:
    """Two or three troubles of one node at once: whichever they are, or such as are worst together,
    at their worst.
    """
    found: list[Drawn] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        node, at = rng.choice(nodes), rng.uniform(0.5, seconds)
        is_worst = rng.random() < 0.6
        several = rng.choice(WORST) if is_worst else rng.sample(TOGETHER, rng.choice((2, 3)))
        for what in several:
            values = TROUBLES[what](rng, (node,), lease)
            if is_worst:
                values |= _at_worst(values, lease)
            found.append((at, what, values))
            at += rng.uniform(0.0, STORM_SECONDS)
    return found


def _at_worst(values: Mapping[str, Any], lease: float) -> dict[str, Any]:
    if "chance" in values:
        return {"chance": 1.0, "seconds": 2 * lease, "delay": 1.5 * lease}
    return {"back": lease} if "away" in values else {}


def draw_business(rng: random.Random, nodes: Sequence[str]) -> list[Drawn]:
    """A few more jobs, what is asked of them, and a node that is told to stop meanwhile."""
    found = users.draw_few(rng, BUSINESS_SECONDS)
    if rng.random() < 0.4:
        at = rng.uniform(0.5, BUSINESS_SECONDS)
        found.append((at, "terminate", {"node": rng.choice(nodes), "back": None}))
    return found
