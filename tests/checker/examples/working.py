"""S16, L9 and M1: what handlers do."""

from __future__ import annotations

from typing import Any

from tests.checker.examples.story import NORTH, SOUTH, Story, breaks, ending, legal

MARGIN: dict[str, Any] = {"margin_seconds": 2}


@breaks("S16", **MARGIN)
def an_effect_after_the_lease(h: Story) -> None:
    h.run_unrenewed(28.5)
    h.handler("effect", 1, "a")


@breaks("S16", **MARGIN)
def a_handler_begins_without_a_claim(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.claim(1, "a")
    h.handler("begin", 2, "a")


@breaks("S16")
def two_handlers_of_one_job(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.handler("effect", 1, "a")


@legal(stop_seconds=8, **MARGIN)
def a_handler_that_takes_its_time_to_stop_while_the_next_one_runs(h: Story) -> None:
    h.run_until_told()
    h.move_and_run(3)
    h.stop(after_seconds=4)


def succeeds_once_more(h: Story) -> None:
    """The store knows nothing of the first success, nor of its claim."""
    h.claim(1, "b", 1, SOUTH)
    h.handler("begin", 1, "b", 1, who=SOUTH)
    h.note("end", job=1, attempt=1, who=SOUTH, token="b", outcome="success")
    h.settle(1, "b", SOUTH)
    h.finish("succeeded")


@legal(commits=(True,))
def a_success_whose_claim_a_failover_had_undone(h: Story) -> None:
    h.run()
    h.note("fault", what="failover", lost_since=2)
    h.note("fault", what="heal")
    h.note("end", job=1, attempt=1, who=NORTH, token="a", outcome="success")
    succeeds_once_more(h)


@legal(commits=(True,))
def a_success_after_the_faults_whose_claim_a_failover_had_undone(h: Story) -> None:
    h.take()
    h.note("fault", what="failover", lost_since=2)
    h.note("fault", what="heal")
    h.handler("begin", 1, "a")
    h.note("end", job=1, attempt=1, who=NORTH, token="a", outcome="success")
    succeeds_once_more(h)


@legal()
def the_clock_of_the_store_ends_a_lease_early(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.note("fault", what="clock", who="store", seconds=30)
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.handler("effect", 1, "a")


@breaks("S16", stop_seconds=8)
def a_handler_that_takes_too_long_to_stop(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.stop(after_seconds=9)


@legal(**MARGIN)
def a_handler_that_stops_before_the_margin(h: Story) -> None:
    h.run_unrenewed(27)
    h.handler("told", 1, "a")
    h.handler("end", 1, "a", outcome="canceled")
    h.move(4)


@legal(**MARGIN)
def a_long_job_with_renewals(h: Story) -> None:
    h.run()
    for _ in range(5):
        h.wait(20)
        h.renew(1, "a")
    h.handler("effect", 1, "a")
    h.handler("end", 1, "a", outcome="success")
    h.settle(1, "a")
    h.finish("succeeded")


@breaks("L9")
def a_success_is_thrown_away(h: Story) -> None:
    h.succeed()
    h.succeed("b", 2)
    h.finish("succeeded")


@breaks("L9")
def a_success_counts_as_a_failure(h: Story) -> None:
    h.succeed()
    h.finish("failed")


@legal()
def a_success_of_a_node_that_was_killed_before_it_was_written(h: Story) -> None:
    h.succeed()
    h.note("fault", what="kill", node="north")
    h.note("fault", what="heal")
    h.succeed("b", 2)
    h.finish("succeeded")


@breaks("M1")
def a_finished_phase_is_run_again(h: Story) -> None:
    h.take()
    h.handler("begin", 1, "a", phase="download")
    h.do("phase", NORTH, job=1, token="a", name="download")
    h.settle(1, "a", **ending("queued"))
    h.claim(1, "b", 2)
    h.handler("begin", 1, "b", 2, phase="download")


@legal()
def a_paused_job_goes_on_with_the_next_phase(h: Story) -> None:
    h.take()
    h.handler("begin", 1, "a", phase="download")
    h.do("phase", NORTH, job=1, token="a", name="download")
    h.handler("begin", 1, "a", phase="process")
    h.control("pause", 1, "running", asked=True)
    h.handler("told", 1, "a")
    h.settle(1, "a", **ending("paused", forgive=True))
    h.control("resume", 1, "queued")
    h.claim(1, "b", 2)
    h.handler("begin", 1, "b", 2, phase="process")
    h.settle(1, "b", **ending(attempt=2))


@legal()
def a_phase_of_which_no_end_was_written_is_run_again(h: Story) -> None:
    h.take()
    h.handler("begin", 1, "a", phase="download")
    call = h.call("phase", NORTH, job=1, token="a", name="download")
    h.reply(call, "unknown")
    h.lapse()
    h.claim(1, "b", 2)
    h.handler("begin", 1, "b", 2, phase="download")


@legal(**MARGIN)
def a_claim_is_heard_of_after_the_clock_was_put_forward(h: Story) -> None:
    """Its lease had ended by then on the store's clock, and by nobody else's."""
    h.take()
    h.wait(5)
    h.note("fault", what="clock", who="store", seconds=30)
    h.reap(1)
    h.claim(1, "b", 2, SOUTH)
    h.handler("begin", 1, "b", 2, who=SOUTH)
    h.handler("begin", 1, "a")
