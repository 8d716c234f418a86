"""S8 to S10: what may follow what."""

from __future__ import annotations

from tests.checker.examples.story import CLIENT, NORTH, SOUTH, Story, breaks, ending, legal


@breaks("S8")
def it_succeeds_and_is_canceled(h: Story) -> None:
    h.take()
    h.settle(1, "a")
    h.control("cancel", 1, "canceled")


@breaks("S8")
def it_ends_and_is_claimed_again(h: Story) -> None:
    h.take()
    h.settle(1, "a")
    h.claim(1, "b", 2, SOUTH)


@breaks("S8")
def it_ended_and_the_store_has_it_otherwise(h: Story) -> None:
    h.take()
    h.settle(1, "a", **ending("failed"))
    h.finish("succeeded")


@breaks("S8")
def its_settlement_is_taken_twice(h: Story) -> None:
    h.take()
    h.settle(1, "a")
    h.settle(1, "a")


@breaks("S8")
def events_tell_of_two_ends(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("job.succeeded", 1, attempt=1)
    h.event("job.failed", 1, attempt=1)


@legal()
def a_cancel_races_a_success(h: Story) -> None:
    h.take()
    end = h.call("settle", NORTH, job=1, token="a", **ending())
    cancel = h.call("cancel", CLIENT, job=1)
    h.commit(cancel, state="running", asked=True)
    h.commit(end)
    h.reply(end)
    h.reply(cancel, state="running", asked=True)
    h.finish("succeeded")


@legal()
def a_cancel_that_came_too_late_is_refused(h: Story) -> None:
    h.take()
    end = h.call("settle", NORTH, job=1, token="a", **ending())
    h.commit(end)
    cancel = h.call("cancel", CLIENT, job=1)
    h.reply(cancel, "refused")
    h.reply(end)
    h.finish("succeeded")


def resume_a_failed_job(h: Story) -> int:
    h.take()
    h.settle(1, "a", **ending("failed"))
    return h.call("resume", CLIENT, job=1)


@legal()
def a_failed_job_is_resumed_and_ends_again(h: Story) -> None:
    resume = resume_a_failed_job(h)
    h.commit(resume, state="queued")
    h.claim(1, "b", 2)
    h.reply(resume, state="queued")
    h.settle(1, "b", **ending(attempt=2))
    h.finish("succeeded")


@legal()
def nobody_knows_whether_it_was_resumed_and_it_was(h: Story) -> None:
    resume = resume_a_failed_job(h)
    h.reply(resume, "unknown")
    h.wait(3)
    h.commit(resume, state="queued")
    h.claim(1, "b", 2)


@breaks("S9")
def a_held_job_is_claimed(h: Story) -> None:
    h.take(hold=True)


@breaks("S9")
def a_paused_job_is_claimed(h: Story) -> None:
    h.claim_in_spite_of("pause", "paused")


@breaks("S9")
def events_tell_of_a_step_that_there_is_not(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.paused", 1)
    h.event("job.started", 1, attempt=1, node="north")


@breaks("S9")
def a_success_without_a_start(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.succeeded", 1)


@breaks("S9")
def a_row_goes_where_it_may_not(h: Story) -> None:
    h.note("edge", job=1, to="queued", **{"from": None})
    h.note("edge", job=1, to="succeeded", **{"from": "queued"})


@breaks("S9")
def a_row_was_elsewhere_before(h: Story) -> None:
    h.note("edge", job=1, to="queued", **{"from": None})
    h.note("edge", job=1, to="succeeded", **{"from": "running"})


@legal()
def a_held_job_is_released_and_paused_and_resumed(h: Story) -> None:
    h.make(1, hold=True)
    h.control("release", 1, "queued")
    h.control("pause", 1, "paused")
    resume = h.call("resume", CLIENT, job=1)
    h.commit(resume, state="queued")
    h.reply(resume, "unknown")
    h.claim(1, "a")
    for before, after in ((None, "pending"), ("pending", "queued"), ("queued", "paused")):
        h.note("edge", job=1, to=after, **{"from": before})


@breaks("S10")
def an_attempt_is_skipped(h: Story) -> None:
    h.make(1)
    h.claim(1, "a", 2)


@breaks("S10")
def an_attempt_is_had_twice(h: Story) -> None:
    h.take()
    h.settle(1, "a", **ending("queued"))
    h.claim(1, "b", 1)


@breaks("S10", budgets={"": 2})
def more_attempts_than_the_budget(h: Story) -> None:
    h.make(1)
    for attempt, token in enumerate("abc", start=1):
        h.claim(1, token, attempt)
        h.wait(31)
        h.reap(1, attempt)


@breaks("S10")
def more_attempts_than_its_own_budget(h: Story) -> None:
    h.take(max_attempts=1)
    h.settle(1, "a", **ending("queued"))
    h.claim(1, "b", 2)


@breaks("S10", budgets={"": 1})
def events_tell_of_more_attempts_than_the_budget(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=1, node="north")
    h.event("job.retrying", 1, attempt=1)
    h.event("job.started", 1, attempt=2, node="north")


@breaks("S10")
def events_skip_an_attempt(h: Story) -> None:
    h.event("job.enqueued", 1)
    h.event("job.started", 1, attempt=3, node="north")


@breaks("S10")
def one_attempt_is_begun_twice(h: Story) -> None:
    h.handler("begin", 1, "a")
    h.handler("begin", 1, "a")


@legal(budgets={"": 2})
def attempts_that_are_given_back_burn_none(h: Story) -> None:
    h.make(1)
    h.event("job.enqueued", 1)
    for attempt, token in enumerate("abcd", start=1):
        h.claim(1, token, attempt)
        h.event("job.started", 1, attempt=attempt, node="north")
        h.do("give_back", NORTH, job=1, token=token, attempt=attempt)
        h.event("job.requeued", 1, attempt=attempt, outcome="released")
    h.claim(1, "e", 5)
    h.settle(1, "e", **ending("failed", 5))
    h.control("resume", 1, "queued")
    h.claim(1, "f", 6)
    h.settle(1, "f", **ending("queued", 6))
    h.claim(1, "g", 7)
    h.settle(1, "g", **ending("failed", 7))


@legal(budgets={"": 1})
def nobody_knows_whether_it_was_given_back_and_it_was(h: Story) -> None:
    h.take()
    call = h.call("give_back", NORTH, job=1, token="a", attempt=1)
    h.commit(call)
    h.reply(call, "unknown")
    h.claim(1, "b", 2, SOUTH)


@breaks("S10", budgets={"": 3})
def it_wants_another_try_and_fails_though_there_are_some_left(h: Story) -> None:
    h.take()
    h.handler("end", 1, "a", outcome="retry")
    h.settle(1, "a", **ending("failed"))


@breaks("S10", budgets={"": 2})
def a_resume_does_not_renew_the_budget(h: Story) -> None:
    h.take()
    h.settle(1, "a", **ending("failed"))
    h.control("resume", 1, "queued")
    h.claim(1, "b", 2)
    h.handler("end", 1, "b", 2, outcome="retry")
    h.settle(1, "b", **ending("failed", 2))


@breaks("S10")
def its_own_budget_is_not_used_up(h: Story) -> None:
    h.make(1, max_attempts=3)
    for attempt, token in enumerate("ab", start=1):
        h.claim(1, token, attempt)
        h.handler("end", 1, token, attempt, outcome="retry")
        h.settle(1, token, **ending("failed" if token == "b" else "queued", attempt))


@legal(budgets={"": 2})
def it_fails_when_its_budget_is_used_up_or_when_it_wants_to(h: Story) -> None:
    h.make(1)
    for attempt, token in enumerate("ab", start=1):
        h.claim(1, token, attempt)
        h.handler("end", 1, token, attempt, outcome="retry")
        h.settle(1, token, **ending("failed" if token == "b" else "queued", attempt))
    h.take(2, "c")
    h.handler("end", 2, "c", outcome="fatal")
    h.settle(2, "c", **ending("failed"))
