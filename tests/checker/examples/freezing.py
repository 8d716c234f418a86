"""S16 and M1: what handlers do whose node was frozen."""

from __future__ import annotations

from typing import Any

from tests.checker.examples.story import SOUTH, Story, breaks, ending, legal

MARGIN: dict[str, Any] = {"margin_seconds": 2}


@breaks("S16", **MARGIN)
def two_effects_after_a_freeze(h: Story) -> None:
    h.run()
    h.freeze(60)
    h.handler("effect", 1, "a")
    h.handler("effect", 1, "a")


@legal(stop_seconds=8, **MARGIN)
def a_handler_that_takes_its_time_to_stop_while_its_node_stands_still(h: Story) -> None:
    h.run_until_told()
    h.freeze(20)
    h.stop(after_seconds=7)


def stops_after_a_freeze(h: Story, seconds: float) -> None:
    """It was told to before; the next one began 2 s later, and its node was frozen then."""
    h.handler("begin", 1, "a")
    h.handler("told", 1, "a")
    h.wait(2)
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.freeze(20)
    h.wait(seconds)
    h.handler("end", 1, "a", outcome="stopped")


@legal(stop_seconds=8)
def a_handler_that_takes_its_time_and_a_freeze_to_stop_while_the_next_one_runs(
    h: Story,
) -> None:
    stops_after_a_freeze(h, 5)


@breaks("S16", stop_seconds=8)
def a_handler_that_takes_too_long_to_stop_after_a_freeze(h: Story) -> None:
    stops_after_a_freeze(h, 9)


@legal(**MARGIN)
def one_effect_in_each_of_two_freezes_that_the_lease_survived(h: Story) -> None:
    h.run()
    for _ in range(2):
        h.freeze(31)
        h.handler("effect", 1, "a")
        h.renew(1, "a")


@legal(look_seconds=1, **MARGIN)
def one_effect_of_a_node_that_has_not_looked_again_since_a_freeze(h: Story) -> None:
    h.run()
    h.freeze(27.5)
    h.wait(0.7)
    h.handler("effect", 1, "a")


def goes_on(h: Story, every_seconds: float) -> None:
    for _ in range(3):
        h.wait(every_seconds)
        h.handler("effect", 1, "a")


@legal(look_seconds=1, **MARGIN)
def several_effects_before_the_first_look_after_a_freeze(h: Story) -> None:
    h.run()
    h.freeze(31)
    goes_on(h, 0.3)


@legal(look_seconds=1, **MARGIN)
def several_effects_before_the_first_look_after_two_freezes(h: Story) -> None:
    h.run()
    for seconds in (31, 9):
        h.freeze(seconds)
        h.wait(0.3)
        h.handler("effect", 1, "a")
    h.handler("effect", 1, "a")


@breaks("S16", look_seconds=1, **MARGIN)
def several_effects_long_after_a_freeze(h: Story) -> None:
    h.run()
    h.freeze(31)
    goes_on(h, 0.6)


@legal()
def one_effect_right_after_a_freeze_in_which_the_lease_ran_out(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.freeze(60)
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.handler("effect", 1, "a")
    h.stop()


def has_effects_after_a_freeze(h: Story, every_seconds: float) -> None:
    """The lease ran out meanwhile, and the next attempt has begun."""
    h.handler("begin", 1, "a")
    h.freeze(60)
    h.handler("begin", 1, "b", 2, who=SOUTH)
    goes_on(h, every_seconds)


@legal(look_seconds=1)
def several_effects_before_the_first_look_while_the_next_one_runs(h: Story) -> None:
    has_effects_after_a_freeze(h, 0.3)


@breaks("S16", look_seconds=1)
def several_effects_after_the_first_look_while_the_next_one_runs(h: Story) -> None:
    has_effects_after_a_freeze(h, 0.6)


@legal()
def a_beginning_that_was_under_way_in_a_freeze(h: Story) -> None:
    h.note("fault", what="freeze", node="north")
    h.wait(60)
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.note("fault", what="thaw", node="north")
    h.handler("begin", 1, "a")
    h.stop()


@legal()
def a_phase_that_was_about_to_begin_in_a_freeze(h: Story) -> None:
    """The next attempt has finished it meanwhile."""
    h.take()
    h.note("fault", what="freeze", node="north")
    h.move_and_run(phase="download")
    h.do("phase", SOUTH, job=1, token="b", name="download")
    h.note("fault", what="thaw", node="north")
    h.handler("begin", 1, "a", phase="download")
    h.handler("end", 1, "a", outcome="stopped", phase="download")


@legal(**MARGIN)
def one_effect_that_was_under_way_in_a_freeze(h: Story) -> None:
    h.run()
    h.note("fault", what="freeze", node="north")
    h.move_and_run()
    h.wait(5)
    h.note("fault", what="thaw", node="north")
    h.handler("effect", 1, "a")
    h.handler("end", 1, "a", outcome="canceled")
    h.handler("end", 1, "b", 2, who=SOUTH, outcome="success")
    h.settle(1, "b", SOUTH, **ending(attempt=2))


@legal(stop_seconds=1)
def a_handler_is_told_just_after_its_node_wakes_up(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.freeze(31)
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.handler("told", 1, "a")
    h.handler("end", 1, "a", outcome="canceled")
    h.handler("end", 1, "b", 2, who=SOUTH, outcome="success")
