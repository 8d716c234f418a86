"""Five loads: when which jobs arrive. The same seed always gives the same ones. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import NamedTuple

SEED = 22


class Arrival(NamedTuple):
    """A job that runs for `milliseconds` comes `at_seconds` after the begin."""

    at_seconds: float
    milliseconds: int

    @property
    def kind(self) -> str:
        return f"sleep-{self.milliseconds}"


def steady(seconds: float, dice: Random) -> Iterator[Arrival]:
    """40 jobs of 50 ms a second, by chance: two workers are busy on average."""
    yield from _by_chance(seconds, dice, lambda _: 40.0, 50)


def bursts(seconds: float, dice: Random) -> Iterator[Arrival]:
    """300 jobs of 5 ms at once, every 15 s."""
    for number in range(math.ceil(seconds / 15)):
        at = number * 15 + dice.uniform(0, 2)
        yield from [Arrival(at, 5)] * 300


def long(seconds: float, dice: Random) -> Iterator[Arrival]:
    """A job of 4 s about every second: four workers are busy on average."""
    yield from _by_chance(seconds, dice, lambda _: 1.0, 4_000)


def mixed(seconds: float, dice: Random) -> Iterator[Arrival]:
    """20 jobs of 20 ms a second, one of 1 s, now and then one of 8 s, and 25 of 200 ms at once each
    20 s.
    """
    yield from _by_chance(seconds, dice, lambda _: 20.0, 20)
    yield from _by_chance(seconds, dice, lambda _: 1.0, 1_000)
    yield from _by_chance(seconds, dice, lambda _: 0.1, 8_000)
    for number in range(math.ceil(seconds / 20)):
        yield from [Arrival(number * 20 + dice.uniform(0, 10), 200)] * 25


def curve(seconds: float, dice: Random) -> Iterator[Arrival]:
    """A day in fast motion, of jobs of 200 ms: from two a second up to forty, and back."""
    yield from _by_chance(
        seconds, dice, lambda at: 21 - 19 * math.cos(2 * math.pi * at / seconds), 200
    )


LOADS: Mapping[str, Callable[[float, Random], Iterator[Arrival]]] = {
    "steady": steady,
    "bursts": bursts,
    "long": long,
    "mixed": mixed,
    "curve": curve,
}


def arrivals(load: str, seconds: float) -> Sequence[Arrival]:
    """In order."""
    return sorted(LOADS[load](seconds, Random(f"{SEED} {load}")))


def together(jobs: Sequence[Arrival]) -> Iterator[tuple[float, list[Arrival]]]:
    """What arrives at one moment is enqueued at once."""
    for at_seconds, alike in groupby(jobs, key=lambda one: one.at_seconds):
        yield at_seconds, list(alike)


def catalog(jobs: Sequence[Arrival]) -> str:
    """The kinds of these jobs, which sleep: the machine has two cores for all contestants."""
    kinds = {one.kind: one.milliseconds for one in jobs}
    return "".join(f"[kinds.{kind}]\nduration_ms = {ms}\n" for kind, ms in sorted(kinds.items()))


def _by_chance(
    seconds: float, dice: Random, rate: Callable[[float], float], milliseconds: int
) -> Iterator[Arrival]:
    """Jobs that know nothing of each other, so many a second at each moment."""
    most = max(rate(seconds * step / 100) for step in range(101))
    at = dice.expovariate(most)
    while at < seconds:
        if dice.random() * most < rate(at):
            yield Arrival(at, milliseconds)
        at += dice.expovariate(most)
