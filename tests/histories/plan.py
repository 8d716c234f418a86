"""What a seed wants: who takes part, for how long leases last, and what goes wrong when."""

from __future__ import annotations

import random
from collections.abc import Mapping

import attrs

SEATS = 6  # the most who take part, each on a line of its own
# What befalls a line. A kill breaks it, and whoever spoke over it remembers nothing.
LINE_TROUBLES = ("kill", "line_held", "partition", "reply_cut", "request_cut", "line_broken")
SERVER_TROUBLES = ("sessions_ended",)
RESTART_CHANCE = 0.02
QUIET_CHANCE = 0.1


@attrs.frozen
class Trouble:
    """Befalls seat `seat` once so many operations have been asked for."""

    what: str
    after: int
    seat: int
    seconds: float


@attrs.frozen
class Plan:
    """`turns`: of each who takes part. `impatience`: by what chance an operation is given up
    under way.
    """

    seed: int
    nodes: int
    users: int
    turns: int
    lease_seconds: float
    duty_seconds: float
    retention_seconds: float
    caps: Mapping[str, int]
    leased_max: int | None
    impatience: float
    troubles: tuple[Trouble, ...]

    def rng(self, name: str) -> random.Random:
        return random.Random(f"{self.seed} {name}")


def draw(seed: int) -> Plan:
    rng = random.Random(f"{seed} plan")
    nodes, users = rng.choice((2, 3, 3, 4)), rng.choice((1, 2, 2))
    turns = rng.choice((15, 25, 35))
    is_quiet = rng.random() < QUIET_CHANCE
    return Plan(
        seed=seed,
        nodes=nodes,
        users=users,
        turns=turns,
        lease_seconds=rng.choice((0.04, 0.08, 0.15, 0.3)),
        duty_seconds=rng.choice((0.03, 0.1, 0.3)),
        retention_seconds=rng.choice((0.0, 0.02, 0.1)),
        caps=rng.choice(({}, {"capped": 1}, {"capped": 2}, {"capped": 3})),
        leased_max=rng.choice((None, None, 3, 6)),
        impatience=0.0 if is_quiet else rng.choice((0.0, 0.02, 0.08)),
        troubles=() if is_quiet else _troubles(rng, nodes + users, turns),
    )


def _troubles(rng: random.Random, seats: int, turns: int) -> tuple[Trouble, ...]:
    last = seats * turns
    found = [
        Trouble(
            rng.choice((*LINE_TROUBLES, *LINE_TROUBLES, *SERVER_TROUBLES)),
            rng.randrange(last),
            rng.randrange(seats),
            rng.uniform(0.01, 0.12),
        )
        for _ in range(rng.choice((1, 2, 4, 8)))
    ]
    if rng.random() < RESTART_CHANCE:
        found.append(Trouble("server_crash", rng.randrange(last), 0, 0.0))
    return tuple(sorted(found, key=lambda one: one.after))
