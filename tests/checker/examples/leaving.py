"""M2 to M5: what is left to its lease, what is taken first, and when it started."""

from __future__ import annotations

from tests.checker.examples.story import LEASE_SECONDS, NORTH, SOUTH, Story, breaks, ending, legal

SOON = {"read_back": 3}


def claim_unheard(h: Story) -> None:
    """Job 1, whose claim is without a reply."""
    h.make(1)
    call = h.call("claim", NORTH, token="a", lease_seconds=LEASE_SECONDS)
    h.commit(call, jobs=[{"job": 1, "attempt": 1}])
    h.reply(call, "unknown")


@breaks("M2", bounds=SOON)
def nobody_asks_for_a_claim_without_a_reply(h: Story) -> None:
    claim_unheard(h)
    h.make(2)
    h.wait(4)
    h.claim(2, "b")


@breaks("M2", bounds=SOON)
def another_claim_is_asked_for(h: Story) -> None:
    claim_unheard(h)
    h.do("read_back", NORTH, {"jobs": []}, token="b")
    h.wait(4)
    h.do("read_back", NORTH, {"jobs": []}, token="c")


@breaks("M2", bounds=SOON)
def it_stood_still_and_then_asks_for_other_things(h: Story) -> None:
    claim_unheard(h)
    h.freeze(4)
    h.wait(4)
    h.do("claim", NORTH, {"jobs": []}, token="b", lease_seconds=LEASE_SECONDS)


def ask_for_something_else(h: Story) -> None:
    h.do("claim", NORTH, {"jobs": []}, token="b", lease_seconds=LEASE_SECONDS)


def ask_back(h: Story, status: str) -> None:
    h.reply(h.call("read_back", NORTH, token="a"), status)


def ask_in_vain(h: Story, status: str) -> None:
    claim_unheard(h)
    ask_back(h, status)


@breaks("M2", bounds=SOON)
def it_is_asked_for_once_and_nobody_answers(h: Story) -> None:
    ask_in_vain(h, "unknown")
    h.wait(4)
    ask_for_something_else(h)


@breaks("M2", bounds=SOON)
def it_is_asked_for_once_and_that_is_refused(h: Story) -> None:
    ask_in_vain(h, "refused")
    h.wait(4)
    ask_for_something_else(h)


@legal(bounds=SOON)
def it_is_asked_for_until_there_is_an_answer(h: Story) -> None:
    ask_in_vain(h, "refused")
    h.wait(2)
    call = h.call("read_back", NORTH, token="a")
    h.wait(4)
    ask_for_something_else(h)
    h.reply(call, jobs=[{"job": 1, "attempt": 1}])
    h.wait(4)
    h.settle(1, "a")


@legal(bounds=SOON)
def a_claim_without_a_reply_is_asked_for(h: Story) -> None:
    claim_unheard(h)
    h.wait(2)
    h.do("read_back", NORTH, {"jobs": [{"job": 1, "attempt": 1}]}, token="a")
    h.wait(4)
    h.settle(1, "a")


@legal(bounds=SOON)
def it_is_asked_for_as_soon_as_its_node_goes_on(h: Story) -> None:
    claim_unheard(h)
    h.freeze(9)
    ask_back(h, "unknown")


@legal(bounds=SOON)
def whoever_claimed_has_ended(h: Story) -> None:
    claim_unheard(h)
    h.note("process", what="ended", node="north", children=0)
    h.note("process", what="started", node="north")
    h.wait(9)
    h.do("claim", NORTH, {"jobs": []}, token="b", lease_seconds=LEASE_SECONDS)


def leave_a_job(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.take()
    h.drain()
    h.lapse()


@breaks("M3")
def a_node_leaves_and_keeps_its_job(h: Story) -> None:
    leave_a_job(h)


@breaks("M3")
def a_node_lives_and_does_not_renew(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="line_cut", node="north")
    h.wait(1)
    h.note("fault", what="heal")
    h.take()
    h.lapse()


@breaks("M3", stop_seconds=8)
def a_node_that_nobody_told_to_stop_lets_a_lease_run_out(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.take()
    h.lapse()


@legal()
def a_node_dies_with_its_job(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.take()
    h.note("fault", what="kill", node="north")
    h.lapse()


@legal()
def the_lease_was_had_before_it_became_calm(h: Story) -> None:
    h.note("process", what="started", node="north")
    h.note("fault", what="line_cut", node="north")
    h.take()
    h.note("fault", what="heal")
    h.lapse()


@legal(stop_seconds=8)
def work_that_does_not_stop_is_left_behind(h: Story) -> None:
    leave_a_job(h)


@breaks("M4", commits=(True,))
def the_later_one_is_claimed_first(h: Story) -> None:
    h.make(1)
    h.take(2, "a")


@breaks("M4", commits=(True,))
def the_less_urgent_one_is_claimed_first(h: Story) -> None:
    h.make(1)
    h.make(2, priority=5)
    h.claim(1, "a")


@breaks("M4", commits=(True,))
def a_claim_hands_out_the_later_one_first(h: Story) -> None:
    h.make(1)
    h.make(2)
    jobs = [{"job": 2, "attempt": 1}, {"job": 1, "attempt": 1}]
    h.do("claim", NORTH, {"jobs": jobs}, token="a", lease_seconds=LEASE_SECONDS)


@legal(caps={"report": 1})
def one_has_no_room(h: Story) -> None:
    h.make(1)
    h.make(2)
    h.make(3, kind="other")
    h.claim(1, "a")
    h.claim(3, "b", node=SOUTH)


@legal()
def some_have_to_wait_and_others_come_first(h: Story) -> None:
    h.make(1, delay_seconds=9)
    h.make(2, target="x")
    h.make(3, hold=True)
    h.make(4, priority=-1)
    h.make(5)
    h.take(6, "a", priority=5)
    h.claim(5, "b")
    h.claim(4, "c")


@legal()
def what_was_made_before_the_clock_was_put_back_may_come_later(h: Story) -> None:
    h.make(1)
    h.note("fault", what="clock", who="store", seconds=-60)
    h.make(2)
    h.make(3)
    h.claim(2, "a")
    h.claim(3, "b")
    h.settle(2, "a", **ending())


def two_in_turn(h: Story, *starts: str, restart: bool = False) -> None:
    """North runs two jobs, which the store says started then."""
    for job in (1, 2):
        if job == 1 or restart:
            h.note("process", what="started", node="north")
        h.run(job, str(job))
        h.wait(1)
        h.handler("end", job, str(job), outcome="success")
        h.settle(job, str(job))
    h.end()
    for job, start in enumerate(starts, 1):
        times = {"started_at": f"2026-01-01T00:00:{start}Z", "finished_at": "2026-01-01T00:00:30Z"}
        attempt = {"attempt": 1, "node": "north", "outcome": "succeeded", **times}
        h.row(job, "succeeded", created_at="2026-01-01T00:00:01Z", attempts=[attempt])


@breaks("M5", commits=(True,))
def the_later_one_started_earlier(h: Story) -> None:
    two_in_turn(h, "05.000001", "05")


@breaks("M5", commits=(True,))
def one_started_before_it_was_made(h: Story) -> None:
    two_in_turn(h, "00", "05")


@breaks("M5", commits=(True,))
def one_started_after_its_end(h: Story) -> None:
    two_in_turn(h, "05", "31")


@legal()
def both_started_at_once(h: Story) -> None:
    two_in_turn(h, "05", "05")


@legal()
def a_node_that_was_started_again_knows_nothing_of_earlier_starts(h: Story) -> None:
    two_in_turn(h, "06", "05", restart=True)
