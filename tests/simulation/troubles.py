"""What can go wrong with the ground: for each kind, how one occurrence of it is drawn."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

Draw = Callable[[random.Random, Sequence[str], float], dict[str, Any]]


def _spell(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    """Weather of one node, or of all; now and then, or always."""
    return {
        "node": rng.choice((None, rng.choice(nodes))),
        "seconds": rng.uniform(0.5, 2.5 * lease),
        "chance": rng.choice((0.05, 0.2, 0.5, 1.0)),
        "delay": rng.choice((0.05, 0.5, lease / 2, 1.5 * lease)),
        "seed": rng.random(),
    }


def _anybody(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    return {**_spell(rng, nodes, lease), "node": None}


def _outage(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    return {**_spell(rng, nodes, lease), "node": None, "chance": 1.0}


def _cut(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    return {**_spell(rng, nodes, lease), "node": rng.choice(nodes), "chance": 1.0}


def _window(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    del nodes
    return {"seconds": rng.uniform(0.5, 1.5 * lease)}


def _step(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    del nodes
    return {"seconds": rng.choice((-2 * lease, -1.0, -0.1, 0.1, 1.0, lease, 3 * lease))}


def _skew(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    skews = (-3600.0, -30.0, -lease, lease, 30.0, 86_400.0)
    return {"node": rng.choice(nodes), "seconds": rng.choice(skews)}


def _stop(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    """Often for about as long as a lease."""
    share = rng.choice((0.1, 0.5, 0.9, 1.0, 1.1, 2.0))
    return {"node": rng.choice(nodes), "seconds": share * lease * rng.uniform(0.9, 1.1)}


def _down(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    back = rng.choice((0.5, 3.0, 2 * lease, None))
    return {"node": rng.choice(nodes), "back": back}


def _again(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    del lease
    return {"node": rng.choice(nodes), "back": rng.choice((0.0, 0.01, 0.2))}


def _reload(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    del lease
    return {
        "node": rng.choice(nodes),
        "poll_ms": rng.choice((500, 1000, 3000)),
        "max_count": rng.choice((2, 3, 4)),
    }


def _node(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    del lease
    return {"node": rng.choice(nodes), "seed": rng.random()}


def _failover(rng: random.Random, nodes: Sequence[str], lease: float) -> dict[str, Any]:
    """`back`: what was committed in so many seconds before it is lost."""
    del nodes
    return {
        "back": rng.choice((0.05, 0.5, 2.0, lease)),
        "away": rng.choice((0.0, 0.5, 3.0)),
    }


TROUBLES: dict[str, Draw] = {
    **dict.fromkeys(
        (
            *("request_lost", "reply_lost", "late_apply", "slow_store", "slow_reply"),
            *("conflict", "lock_timeout", "interrupted", "too_many_connections"),
            *("hints_lost", "hints_doubled", "hints_late", "hints_broken"),
        ),
        _spell,
    ),
    **dict.fromkeys(("hook_silent", "hook_refuses", "hook_unheard"), _anybody),
    "store_away": _outage,
    "line_cut": _cut,
    "connections_dropped": _node,
    "disk_full": _window,
    "read_only": _window,
    "clock_step": _step,
    "clock_skew": _skew,
    "freeze": _stop,
    "suspend": _stop,
    "kill": _down,
    "restart": _again,
    "terminate": _down,
    "terminate_twice": _down,
    "reload": _reload,
    "bad_reload": _node,
    "failover": _failover,
    "lossy_failover": _failover,
}
# Weather that befalls something else than requests.
OTHER_SPELLS = frozenset(
    {
        *("hints_lost", "hints_doubled", "hints_late", "hints_broken"),
        *("hook_silent", "hook_refuses", "hook_unheard"),
    }
)
