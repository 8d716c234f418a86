"""S16 and M1: what handlers do whose node was frozen."""

from __future__ import annotations

from typing import Any

from tests.checker.examples.telling import (
    NORTH,
    SOUTH,
    breaks,
    claim,
    ending,
    handler,
    legal,
    make,
    reap,
    renew,
    settle,
)
from tests.checker.writing import History

MARGIN: dict[str, Any] = {"margin_seconds": 2}


@breaks("S16", **MARGIN)
def two_effects_after_a_freeze(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(60)
    h.note("fault", what="thaw", node="north")
    handler(h, "effect", 1, "a")
    handler(h, "effect", 1, "a")


@legal(stop_seconds=8, **MARGIN)
def a_handler_that_takes_its_time_to_stop_while_its_node_stands_still(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.wait(28)
    h.note("told", job=1, attempt=1)
    h.note("fault", what="freeze", node="north")
    h.wait(20)
    h.note("fault", what="thaw", node="north")
    h.wait(7)
    h.note("end", job=1, attempt=1, who=NORTH, token="a", outcome="stopped")


def stops_after_a_freeze(h: History, seconds: float) -> None:
    """It was told to before; the next one began 2 s later, and its node was frozen then."""
    handler(h, "begin", 1, "a")
    handler(h, "told", 1, "a")
    h.wait(2)
    handler(h, "begin", 1, "b", 2, who=SOUTH)
    h.note("fault", what="freeze", node="north")
    h.wait(20)
    h.note("fault", what="thaw", node="north")
    h.wait(seconds)
    handler(h, "end", 1, "a", outcome="stopped")


@legal(stop_seconds=8)
def a_handler_that_takes_its_time_and_a_freeze_to_stop_while_the_next_one_runs(
    h: History,
) -> None:
    stops_after_a_freeze(h, 5)


@breaks("S16", stop_seconds=8)
def a_handler_that_takes_too_long_to_stop_after_a_freeze(h: History) -> None:
    stops_after_a_freeze(h, 9)


@legal(**MARGIN)
def one_effect_in_each_of_two_freezes_that_the_lease_survived(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    for _ in range(2):
        h.note("fault", what="freeze", node="north")
        h.wait(31)
        h.note("fault", what="thaw", node="north")
        handler(h, "effect", 1, "a")
        renew(h, 1, "a")


@legal(look_seconds=1, **MARGIN)
def one_effect_of_a_node_that_has_not_looked_again_since_a_freeze(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(27.5)
    h.note("fault", what="thaw", node="north")
    h.wait(0.7)
    handler(h, "effect", 1, "a")


@legal(look_seconds=1, **MARGIN)
def several_effects_before_the_first_look_after_a_freeze(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(31)
    h.note("fault", what="thaw", node="north")
    for _ in range(3):
        h.wait(0.3)
        handler(h, "effect", 1, "a")


@legal(look_seconds=1, **MARGIN)
def several_effects_before_the_first_look_after_two_freezes(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    for seconds in (31, 9):
        h.note("fault", what="freeze", node="north")
        h.wait(seconds)
        h.note("fault", what="thaw", node="north")
        h.wait(0.3)
        handler(h, "effect", 1, "a")
    handler(h, "effect", 1, "a")


@breaks("S16", look_seconds=1, **MARGIN)
def several_effects_long_after_a_freeze(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(31)
    h.note("fault", what="thaw", node="north")
    for _ in range(3):
        h.wait(0.6)
        handler(h, "effect", 1, "a")


@legal()
def one_effect_right_after_a_freeze_in_which_the_lease_ran_out(h: History) -> None:
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(60)
    h.note("fault", what="thaw", node="north")
    handler(h, "begin", 1, "b", 2, who=SOUTH)
    handler(h, "effect", 1, "a")
    h.note("end", job=1, attempt=1, who=NORTH, token="a", outcome="stopped")


def has_effects_after_a_freeze(h: History, every_seconds: float) -> None:
    """The lease ran out meanwhile, and the next attempt has begun."""
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(60)
    h.note("fault", what="thaw", node="north")
    handler(h, "begin", 1, "b", 2, who=SOUTH)
    for _ in range(3):
        h.wait(every_seconds)
        handler(h, "effect", 1, "a")


@legal(look_seconds=1)
def several_effects_before_the_first_look_while_the_next_one_runs(h: History) -> None:
    has_effects_after_a_freeze(h, 0.3)


@breaks("S16", look_seconds=1)
def several_effects_after_the_first_look_while_the_next_one_runs(h: History) -> None:
    has_effects_after_a_freeze(h, 0.6)


@legal()
def a_beginning_that_was_under_way_in_a_freeze(h: History) -> None:
    h.note("fault", what="freeze", node="north")
    h.wait(60)
    handler(h, "begin", 1, "b", 2, who=SOUTH)
    h.note("fault", what="thaw", node="north")
    handler(h, "begin", 1, "a")
    h.note("end", job=1, attempt=1, who=NORTH, token="a", outcome="stopped")


@legal()
def a_phase_that_was_about_to_begin_in_a_freeze(h: History) -> None:
    """The next attempt has finished it meanwhile."""
    make(h, 1)
    claim(h, 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(31)
    reap(h, 1)
    claim(h, 1, "b", 2, SOUTH)
    handler(h, "begin", 1, "b", 2, who=SOUTH, phase="download")
    h.do("phase", SOUTH, job=1, token="b", name="download")
    h.note("fault", what="thaw", node="north")
    handler(h, "begin", 1, "a", phase="download")
    handler(h, "end", 1, "a", outcome="stopped", phase="download")


@legal(**MARGIN)
def one_effect_that_was_under_way_in_a_freeze(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(31)
    reap(h, 1)
    claim(h, 1, "b", 2, SOUTH)
    handler(h, "begin", 1, "b", 2, who=SOUTH)
    h.wait(5)
    h.note("fault", what="thaw", node="north")
    handler(h, "effect", 1, "a")
    handler(h, "end", 1, "a", outcome="canceled")
    handler(h, "end", 1, "b", 2, who=SOUTH, outcome="success")
    settle(h, 1, "b", SOUTH, **ending(attempt=2))


@legal(stop_seconds=1)
def a_handler_is_told_just_after_its_node_wakes_up(h: History) -> None:
    handler(h, "begin", 1, "a")
    h.note("fault", what="freeze", node="north")
    h.wait(31)
    h.note("fault", what="thaw", node="north")
    handler(h, "begin", 1, "b", 2, who=SOUTH)
    handler(h, "told", 1, "a")
    handler(h, "end", 1, "a", outcome="canceled")
    handler(h, "end", 1, "b", 2, who=SOUTH, outcome="success")
