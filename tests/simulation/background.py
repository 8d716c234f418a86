"""What a seed wants beside its troubles, drawn by dice of its own: a favourite kind of jobs,
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


def draw_hintless(dice: random.Random) -> bool:
    """Whether no hint ever arrives: what is to be found is found by looking."""
    return dice.random() < HINTLESS


def draw_favourite(dice: random.Random) -> str | None:
    """The kind of most jobs; None = all kinds alike."""
    return dice.choice((None, None, "pipeline", "pipeline", "capped", "once", "rest"))


def with_favourite(
    dice: random.Random, lease: float, kind: str | None, deeds: Iterable[Drawn]
) -> list[Drawn]:
    """The same, with that kind in the place of plain jobs; and in some seeds many of them take as
    long as their lease, or longer.
    """
    long_share = dice.choice((0.0, 0.3, 0.7))
    done: list[Drawn] = []
    for at, what, values in deeds:
        if what == "enqueue":
            jobs = [_mixed(dice, job, kind, (long_share, lease)) for job in values["jobs"]]
            done.append((at, what, {**values, "jobs": jobs}))
        else:
            done.append((at, what, values))
    return done


def _mixed(
    dice: random.Random, job: Mapping[str, Any], kind: str | None, long: tuple[float, float]
) -> dict[str, Any]:
    share, lease = long
    if kind and job["kind"] == "plain":
        job = {**job, "kind": kind}
    seconds = lease * dice.uniform(0.5, 3.0)
    if dice.random() < share and job["kind"] == "plain":
        return users.with_long_work(job, seconds)
    return dict(job)


def draw_storms(
    dice: random.Random, seconds: float, nodes: Sequence[str], lease: float
) -> list[Drawn]:
    """Two or three troubles of one node at once: whichever they are, or such as are worst together,
    at their worst.
    """
    found: list[Drawn] = []
    for _ in range(dice.choice((0, 1, 1, 2))):
        node, at = dice.choice(nodes), dice.uniform(0.5, seconds)
        is_worst = dice.random() < 0.6
        several = dice.choice(WORST) if is_worst else dice.sample(TOGETHER, dice.choice((2, 3)))
        for what in several:
            values = TROUBLES[what](dice, (node,), lease)
            if is_worst:
                values |= _at_worst(values, lease)
            found.append((at, what, values))
            at += dice.uniform(0.0, STORM_SECONDS)
    return found


def _at_worst(values: Mapping[str, Any], lease: float) -> dict[str, Any]:
    if "chance" in values:
        return {"chance": 1.0, "seconds": 2 * lease, "delay": 1.5 * lease}
    return {"back": lease} if "away" in values else {}


def draw_business(dice: random.Random, nodes: Sequence[str]) -> list[Drawn]:
    """A few more jobs, what is asked of them, and a node that is told to stop meanwhile."""
    found = users.draw_few(dice, BUSINESS_SECONDS)
    if dice.random() < 0.4:
        at = dice.uniform(0.5, BUSINESS_SECONDS)
        found.append((at, "terminate", {"node": dice.choice(nodes), "back": None}))
    return found
