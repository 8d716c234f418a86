"""What a seed wants: the cluster, what users and operators do, and what goes wrong, and when. All
of it is drawn before anything runs, so a part can be left out and the rest stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from tests.simulation import background, crowd, users
from tests.simulation.troubles import TROUBLES

JOB_FAULTS = ("hung_handler", "crashing_handler", "bad_payload", "blocked_loop", "poison")


SCHEDULED = {
    "schedules__tick__kind": "plain",
    "schedules__tick__every_seconds": 3,
    "schedules__tick__missed": "all",
    "schedules__tock__kind": "brief",
    "schedules__tock__every_seconds": 5,
    "schedules__tock__overlap": "skip",
}
CROWDED_EVERY = 100  # so many seeds one
KEEP_SECONDS = 8.0  # then a job is deleted, where jobs are deleted at all
FORGETFUL = {
    "retention__stale_after_hours": KEEP_SECONDS / 2 / 3600,
    "retention__delete_after_hours": KEEP_SECONDS / 3600,
    "retention__interval_seconds": 2,
}


@attrs.frozen
class Deed:
    """Something that is done at a moment: by a user, an operator, or the weather."""

    at: float
    what: str
    values: Mapping[str, Any]


@attrs.frozen
class Scenario:
    """`knobs` are settings, by key; `faults` are the kinds of them that this seed wants."""

    seed: int
    nodes: tuple[str, ...]
    knobs: Mapping[str, Any]
    caps: Mapping[str, int]
    lag_seconds: float
    seconds: float  # for which things go wrong
    faults: frozenset[str]
    deeds: tuple[Deed, ...]
    business: tuple[Deed, ...] = ()  # once nothing goes wrong any more; `at` counts from then
    hintless: bool = False

    @property
    def lease_seconds(self) -> float:
        return float(self.knobs["workers__lease_timeout_seconds"])


def draw(seed: int) -> Scenario:
    rng = random.Random(f"musterd {seed}")
    is_crowded = seed % CROWDED_EVERY == 0
    nodes = tuple(f"n{number}" for number in range(1, rng.choice((1, 2, 2, 3, 3, 4)) + 1))
    seconds = rng.choice((15.0, 25.0, 40.0))
    density = rng.choice((0.08, 0.15, 0.3, 0.5))
    kinds = [*TROUBLES, *JOB_FAULTS]
    faults = frozenset(what for what in kinds if rng.random() < density)
    knobs = draw_knobs(rng)
    if is_crowded:
        nodes, knobs = nodes[: crowd.NODES_MAX], knobs | crowd.KNOBS
    aside = random.Random(f"background {seed}")
    wanted = users.draw(rng, seconds, faults)
    lease = knobs["workers__lease_timeout_seconds"]
    favourite = background.draw_favourite(aside)
    wanted = background.with_favourite(aside, lease, favourite, wanted)
    deeds = [*wanted, *_troubles(rng, seconds, faults, nodes, knobs)]
    deeds += background.draw_storms(aside, seconds, nodes, lease)
    hintless = background.draw_hintless(aside)
    business = background.draw_business(aside, nodes)
    if is_crowded:
        crowded = random.Random(f"crowd {seed}")
        deeds += crowd.draw(crowded, seconds)
        business += crowd.draw_calm(crowded, lease, len(nodes))
    return Scenario(
        seed=seed,
        nodes=nodes,
        knobs=knobs,
        caps={"capped": rng.choice((1, 2))},
        lag_seconds=rng.choice((0.0, 0.002, 0.02, 0.1)),
        seconds=seconds,
        faults=faults,
        hintless=hintless,
        deeds=_in_order(deeds),
        business=_in_order(business),
    )


def _in_order(deeds: Iterable[users.Drawn]) -> tuple[Deed, ...]:
    return tuple(sorted((Deed(*one) for one in deeds), key=lambda deed: deed.at))


def draw_knobs(rng: random.Random) -> dict[str, Any]:
    lease = rng.choice((3.0, 4.0, 6.0, 10.0))
    floor = rng.choice((1, 1, 2))
    duty_lease = rng.choice((3.0, 5.0, 8.0))
    return {
        "workers__default_count": floor,
        "workers__max_count": floor + rng.choice((0, 1, 2)),
        "workers__poll_interval_ms": rng.choice((500, 1000, 2000, 4000)),
        "workers__lease_timeout_seconds": lease,
        "workers__scale_interval_ms": rng.choice((1000, 2000, 3000)),
        "leases__heartbeat_seconds": rng.choice((0, 0, lease / 5)),
        "limits__max_running": rng.choice((0, 0, 0, 2, 3)),
        "limits__claim_ahead_ms": rng.choice((0, 20, 1000)),
        "shutdown__grace_period_seconds": rng.choice((1.0, 4.0, 15.0)),
        "shutdown__interrupted": rng.choice(("requeue", "requeue", "pause")),
        "shutdown__dismiss_seconds": 5,
        "shutdown__abandon_seconds": 10,
        "duties__mode": rng.choice(("leader",) * 7 + ("everyone",)),
        "duties__lease_seconds": duty_lease,
        "duties__heartbeat_seconds": duty_lease / 5,
        "retry__base_seconds": rng.choice((0.5, 1, 2)),
        "retry__max_seconds": 4,
        "retry__max_retries": rng.choice((1, 2, 3)),
        "retry__jitter": rng.choice(("full", "none")),
        "webhooks__retry_base_seconds": 0.5,
        "webhooks__retry_max_seconds": 3,
        "webhooks__timeout_seconds": 2,
        "http__listen": "",
        **rng.choice(({}, {}, SCHEDULED)),
        **rng.choice(({}, {}, FORGETFUL)),
    }


def _troubles(
    rng: random.Random,
    seconds: float,
    faults: frozenset[str],
    nodes: tuple[str, ...],
    knobs: Mapping[str, Any],
) -> list[tuple[float, str, dict[str, Any]]]:
    """Each kind that is wanted comes one to three times."""
    found: list[tuple[float, str, dict[str, Any]]] = []
    lease = knobs["workers__lease_timeout_seconds"]
    for what, draw_values in TROUBLES.items():
        own = random.Random(f"{what} {rng.random()}")  # so that kinds do not move each other
        if what not in faults:
            continue
        for _ in range(own.choice((1, 1, 2, 3))):
            at = own.uniform(0.5, seconds)
            found.append((at, what, draw_values(own, nodes, lease)))
    return found
