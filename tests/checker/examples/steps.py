"""S8 to S10: what may follow what."""

from __future__ import annotations

from tests.checker.examples.telling import (
    CLIENT,
    NORTH,
    SOUTH,
    breaks,
    claim,
    control,
    ending,
    handler,
    legal,
    make,
    reap,
    row,
    settle,
)
from tests.checker.writing import History


@breaks("S8")
def it_succeeds_and_is_canceled(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a")
    control(h, "cancel", 1, "canceled")


@breaks("S8")
def it_ends_and_is_claimed_again(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a")
    claim(h, 1, "b", 2, SOUTH)


@breaks("S8")
def it_ended_and_the_store_has_it_otherwise(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("failed"))
    h.end()
    row(h, 1, "succeeded")


@breaks("S8")
def its_settlement_is_taken_twice(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a")
    settle(h, 1, "a")


@breaks("S8")
def events_tell_of_two_ends(h: History) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("job.succeeded", 1, attempt=1)
    h.event("job.failed", 1, attempt=1)


@legal()
def a_cancel_races_a_success(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    end = h.call("settle", NORTH, job=1, token="a", **ending())
    cancel = h.call("cancel", CLIENT, job=1)
    h.commit(cancel, state="running", asked=True)
    h.commit(end)
    h.reply(end)
    h.reply(cancel, state="running", asked=True)
    h.end()
    row(h, 1, "succeeded")


@legal()
def a_cancel_that_came_too_late_is_refused(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    end = h.call("settle", NORTH, job=1, token="a", **ending())
    h.commit(end)
    cancel = h.call("cancel", CLIENT, job=1)
    h.reply(cancel, "refused")
    h.reply(end)
    h.end()
    row(h, 1, "succeeded")


@legal()
def a_failed_job_is_resumed_and_ends_again(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("failed"))
    resume = h.call("resume", CLIENT, job=1)
    h.commit(resume, state="queued")
    claim(h, 1, "b", 2)
    h.reply(resume, state="queued")
    settle(h, 1, "b", **ending(attempt=2))
    h.end()
    row(h, 1, "succeeded")


@legal()
def nobody_knows_whether_it_was_resumed_and_it_was(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("failed"))
    resume = h.call("resume", CLIENT, job=1)
    h.reply(resume, "unknown")
    h.wait(3)
    h.commit(resume, state="queued")
    claim(h, 1, "b", 2)


@breaks("S9")
def a_held_job_is_claimed(h: History) -> None:
    make(h, 1, hold=True)
    claim(h, 1, "a")


@breaks("S9")
def a_paused_job_is_claimed(h: History) -> None:
    make(h, 1)
    control(h, "pause", 1, "paused")
    claim(h, 1, "a")


@breaks("S9")
def events_tell_of_a_step_that_there_is_not(h: History) -> None:
    h.event("job.enqueued", 1)
    h.event("job.paused", 1)
    h.event("job.started", 1, attempt=1, node="north")


@breaks("S9")
def a_success_without_a_start(h: History) -> None:
    h.event("job.enqueued", 1)
    h.event("job.succeeded", 1)


@breaks("S9")
def a_row_goes_where_it_may_not(h: History) -> None:
    h.note("edge", job=1, to="queued", **{"from": None})
    h.note("edge", job=1, to="succeeded", **{"from": "queued"})


@breaks("S9")
def a_row_was_elsewhere_before(h: History) -> None:
    h.note("edge", job=1, to="queued", **{"from": None})
    h.note("edge", job=1, to="succeeded", **{"from": "running"})


@legal()
def a_held_job_is_released_and_paused_and_resumed(h: History) -> None:
    make(h, 1, hold=True)
    control(h, "release", 1, "queued")
    control(h, "pause", 1, "paused")
    resume = h.call("resume", CLIENT, job=1)
    h.commit(resume, state="queued")
    h.reply(resume, "unknown")
    claim(h, 1, "a")
    for before, after in ((None, "pending"), ("pending", "queued"), ("queued", "paused")):
        h.note("edge", job=1, to=after, **{"from": before})


@breaks("S10")
def an_attempt_is_skipped(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a", 2)


@breaks("S10")
def an_attempt_is_had_twice(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("queued"))
    claim(h, 1, "b", 1)


@breaks("S10", budgets={"": 2})
def more_attempts_than_the_budget(h: History) -> None:
    make(h, 1)
    for attempt, token in enumerate("abc", start=1):
        claim(h, 1, token, attempt)
        h.wait(31)
        reap(h, 1, attempt)


@breaks("S10")
def more_attempts_than_its_own_budget(h: History) -> None:
    make(h, 1, max_attempts=1)
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("queued"))
    claim(h, 1, "b", 2)


@breaks("S10", budgets={"": 1})
def events_tell_of_more_attempts_than_the_budget(h: History) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("job.retrying", 1, attempt=1)
    h.event("job.started", 1, attempt=2, node="north")


@breaks("S10")
def events_skip_an_attempt(h: History) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=3, node="north")


@breaks("S10")
def one_attempt_is_begun_twice(h: History) -> None:
    handler(h, "begin", 1, "a")
    handler(h, "begin", 1, "a")


@legal(budgets={"": 2})
def attempts_that_are_given_back_burn_none(h: History) -> None:
    make(h, 1)
    h.event("job.enqueued", 1)
    for attempt, token in enumerate("abcd", start=1):
        claim(h, 1, token, attempt)
        h.event("job.started", 1, attempt=attempt, node="north")
        h.do("give_back", NORTH, job=1, token=token, attempt=attempt)
        h.event("job.requeued", 1, attempt=attempt, outcome="released")
    claim(h, 1, "e", 5)
    settle(h, 1, "e", **ending("failed", 5))
    control(h, "resume", 1, "queued")
    claim(h, 1, "f", 6)
    settle(h, 1, "f", **ending("queued", 6))
    claim(h, 1, "g", 7)
    settle(h, 1, "g", **ending("failed", 7))


@legal(budgets={"": 1})
def nobody_knows_whether_it_was_given_back_and_it_was(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    call = h.call("give_back", NORTH, job=1, token="a", attempt=1)
    h.commit(call)
    h.reply(call, "unknown")
    claim(h, 1, "b", 2, SOUTH)


@breaks("S10", budgets={"": 3})
def it_wants_another_try_and_fails_though_there_are_some_left(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    handler(h, "end", 1, "a", outcome="retry")
    settle(h, 1, "a", **ending("failed"))


@breaks("S10", budgets={"": 2})
def a_resume_does_not_renew_the_budget(h: History) -> None:
    make(h, 1)
    claim(h, 1, "a")
    settle(h, 1, "a", **ending("failed"))
    control(h, "resume", 1, "queued")
    claim(h, 1, "b", 2)
    handler(h, "end", 1, "b", 2, outcome="retry")
    settle(h, 1, "b", **ending("failed", 2))


@breaks("S10")
def its_own_budget_is_not_used_up(h: History) -> None:
    make(h, 1, max_attempts=3)
    for attempt, token in enumerate("ab", start=1):
        claim(h, 1, token, attempt)
        handler(h, "end", 1, token, attempt, outcome="retry")
        settle(h, 1, token, **ending("failed" if token == "b" else "queued", attempt))


@legal(budgets={"": 2})
def it_fails_when_its_budget_is_used_up_or_when_it_wants_to(h: History) -> None:
    make(h, 1)
    for attempt, token in enumerate("ab", start=1):
        claim(h, 1, token, attempt)
        handler(h, "end", 1, token, attempt, outcome="retry")
        settle(h, 1, token, **ending("failed" if token == "b" else "queued", attempt))
    make(h, 2)
    claim(h, 2, "c")
    handler(h, "end", 2, "c", outcome="fatal")
    settle(h, 2, "c", **ending("failed"))
