"""S12: jobs of one target, one at a time and in order."""

from __future__ import annotations

from tests.checker.examples.telling import (
    CLIENT,
    SOUTH,
    breaks,
    claim,
    control,
    ending,
    legal,
    make,
    settle,
)
from tests.checker.writing import History


@breaks("S12")
def two_of_a_target_in_hand(h: History) -> None:
    make(h, 1, target="shop")
    make(h, 2, target="shop")
    claim(h, 1, "a")
    claim(h, 2, "b", node=SOUTH)


@breaks("S12")
def the_second_before_the_first(h: History) -> None:
    make(h, 1, target="shop")
    make(h, 2, target="shop")
    claim(h, 2, "a")


@breaks("S12")
def a_halted_target_goes_on(h: History) -> None:
    make(h, 1, target="shop")
    make(h, 2, target="shop")
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("failed"))
    claim(h, 2, "b")


@breaks("S12")
def events_tell_of_two_of_a_target(h: History) -> None:
    for job in (1, 2):
        h.event("job.enqueued", job, target="shop")
        h.event("job.started", job, target="shop", attempt=1, node="north")
    h.wait(5)
    h.event("job.progress", 1, target="shop")


@breaks("S12")
def events_tell_of_a_start_while_halted(h: History) -> None:
    h.event("job.enqueued", 1, target="shop")
    h.event("job.paused", 1, target="shop")
    h.wait(5)
    h.event("job.enqueued", 2, target="shop")
    h.event("job.started", 2, target="shop", attempt=1, node="north")


@legal()
def a_halted_target_is_resumed(h: History) -> None:
    make(h, 1, target="shop")
    make(h, 2, target="shop")
    make(h, 3, target="shop", priority=5)
    claim(h, 3, "a")
    settle(h, 3, "a", **ending("failed"))
    control(h, "clear", 3, "failed")
    claim(h, 1, "b")
    control(h, "pause", 2, "paused")  # 1 has the target and goes on
    settle(h, 1, "b", **ending("queued"))
    claim(h, 1, "c", 2)
    settle(h, 1, "c", **ending(attempt=2))
    control(h, "resume", 2, "queued")
    claim(h, 2, "d")


@legal()
def a_job_that_is_not_due_blocks_nobody(h: History) -> None:
    make(h, 1, target="shop", delay_seconds=60)
    make(h, 2, target="shop", hold=True)
    make(h, 3, target="shop")
    claim(h, 3, "a")


@legal(commits=(True,))
def a_job_that_had_its_target_before_a_failover(h: History) -> None:
    make(h, 1, target="shop")
    make(h, 2, target="shop")
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("queued"))
    h.note("fault", what="failover", lost_since=1)
    h.do("pause", CLIENT, {"state": "paused"}, job=2)
    claim(h, 1, "b", 2)


@legal(commits=(True,))
def the_id_of_a_job_that_waited_is_that_of_another_after_a_failover(h: History) -> None:
    make(h, 1, target="shop")
    h.note("fault", what="failover", lost_since=1)
    make(h, 1)
    make(h, 2, target="shop")
    claim(h, 2, "a")


@legal(commits=(True,))
def a_pause_that_comes_late_meets_a_job_with_the_id_of_one_that_was_lost(h: History) -> None:
    make(h, 1)
    late = h.call("pause", CLIENT, job=1)
    h.note("fault", what="failover", lost_since=1)
    make(h, 1)
    make(h, 2)
    h.commit(late, state="paused")
    claim(h, 2, "a")


@legal(commits=(True,))
def the_id_of_a_job_that_halted_its_target_is_that_of_another_after_a_failover(h: History) -> None:
    make(h, 1, target="shop")
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("failed"))
    h.note("fault", what="failover", lost_since=1)
    make(h, 1)
    claim(h, 1, "b")
    settle(h, 1, "b", **ending("failed"))
    make(h, 2, target="shop")
    claim(h, 2, "c")


@legal()
def the_clock_of_the_store_decides_what_was_made_first(h: History) -> None:
    make(h, 1, target="shop")
    h.note("fault", what="clock", who="store", seconds=-60)
    make(h, 2, target="shop")
    claim(h, 2, "a")
