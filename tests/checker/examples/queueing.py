"""S12: jobs of one target, one at a time and in order."""

from __future__ import annotations

from tests.checker.examples.story import CLIENT, NORTH, SOUTH, Story, breaks, ending, legal


@breaks("S12")
def two_of_a_target_in_hand(h: Story) -> None:
    h.make(1, target="shop")
    h.make(2, target="shop")
    h.claim(1, "a")
    h.claim(2, "b", node=SOUTH)


@breaks("S12")
def the_second_before_the_first(h: Story) -> None:
    h.make(1, target="shop")
    h.take(2, "a", target="shop")


@breaks("S12")
def a_halted_target_goes_on(h: Story) -> None:
    h.make(1, target="shop")
    h.make(2, target="shop")
    h.claim(1, "a")
    h.settle(1, "a", **ending("failed"))
    h.claim(2, "b")


@breaks("S12")
def events_tell_of_two_of_a_target(h: Story) -> None:
    for job in (1, 2):
        h.event("job.enqueued", job, target="shop")
        h.event("job.started", job, target="shop", attempt=1, node="north")
    h.wait(5)
    h.event("job.progress", 1, target="shop")


@breaks("S12")
def events_tell_of_a_start_while_halted(h: Story) -> None:
    h.event("job.enqueued", 1, target="shop")
    h.event("job.paused", 1, target="shop")
    h.wait(5)
    h.event("job.enqueued", 2, target="shop")
    h.event("job.started", 2, target="shop", attempt=1, node="north")


@legal()
def a_halted_target_is_resumed(h: Story) -> None:
    h.make(1, target="shop")
    h.make(2, target="shop")
    h.take(3, "a", target="shop", priority=5)
    h.settle(3, "a", **ending("failed"))
    h.control("clear", 3, "failed")
    h.claim(1, "b")
    h.control("pause", 2, "paused")  # 1 has the target and goes on
    h.settle(1, "b", **ending("queued"))
    h.claim(1, "c", 2)
    h.settle(1, "c", **ending(attempt=2))
    h.control("resume", 2, "queued")
    h.claim(2, "d")


@legal()
def a_job_that_is_not_due_blocks_nobody(h: Story) -> None:
    h.make(1, target="shop", delay_seconds=60)
    h.make(2, target="shop", hold=True)
    h.take(3, "a", target="shop")


@legal(commits=(False,))
def a_resume_is_asked_for_before_the_end_and_comes_after_it(h: Story) -> None:
    h.take(1)
    wish = h.call("resume", CLIENT, job=1)
    fields = {"job": 1, "token": "a", "attempt": 1, "state": "failed", "outcome": "failed"}
    end = h.call("settle", NORTH, **fields)
    h.reply(wish, state="queued")
    h.reply(end)
    h.claim(1, "b", attempt=2)


@legal(commits=(False,))
def a_target_goes_on_after_a_cancel_of_which_nobody_knows(h: Story) -> None:
    h.make(1, target="red")
    h.control("pause", 1, "paused")
    h.make(2, target="red")
    h.reply(h.call("cancel", CLIENT, job=1), "unknown")
    h.claim(2, "b")


@legal(commits=(True,))
def a_job_that_had_its_target_before_a_failover(h: Story) -> None:
    h.make(1, target="shop")
    h.make(2, target="shop")
    h.claim(1, "a")
    h.settle(1, "a", **ending("queued"))
    h.note("fault", what="failover", lost_since=1)
    h.do("pause", CLIENT, {"state": "paused"}, job=2)
    h.claim(1, "b", 2)


@legal(commits=(True,))
def the_id_of_a_job_that_waited_is_that_of_another_after_a_failover(h: Story) -> None:
    h.make(1, target="shop")
    h.note("fault", what="failover", lost_since=1)
    h.make(1)
    h.take(2, "a", target="shop")


@legal(commits=(True,))
def a_pause_that_comes_late_meets_a_job_with_the_id_of_one_that_was_lost(h: Story) -> None:
    h.make(1)
    late = h.call("pause", CLIENT, job=1)
    h.note("fault", what="failover", lost_since=1)
    h.make(1)
    h.make(2)
    h.commit(late, state="paused")
    h.claim(2, "a")


@legal(commits=(True,))
def the_id_of_a_job_that_halted_its_target_is_that_of_another_after_a_failover(h: Story) -> None:
    h.take(target="shop")
    h.settle(1, "a", **ending("failed"))
    h.note("fault", what="failover", lost_since=1)
    h.take(1, "b")
    h.settle(1, "b", **ending("failed"))
    h.take(2, "c", target="shop")


@legal()
def the_clock_of_the_store_decides_what_was_made_first(h: Story) -> None:
    h.make(1, target="shop")
    h.note("fault", what="clock", who="store", seconds=-60)
    h.take(2, "a", target="shop")
