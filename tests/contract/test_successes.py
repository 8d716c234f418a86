"""Successes that are settled field by field: the same as settlements of attempts of which nothing
else is to be said.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from uuid import uuid4

import pytest

from musterd.store.errors import InputRefused
from musterd.store.events import Event
from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Ends, Exchange, Hold, ProgressNote, Successes
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.phases import KindRule
from tests.contract.event_tools import everything
from tests.contract.job_tools import ending, look, put, reap_by, settle, state_of, take, take_one
from tests.contract.rigs import Rig


async def succeed(
    rig: Rig, *claims: Claim, request: ClaimRequest | None = None, results: Sequence[str] = ()
) -> Exchange:
    """Of jobs that ran from 3 s to 1 s ago, by the worker that they were claimed for, or 9."""
    count, workers = len(claims), [one.worker or 9 for one in claims]
    successes = Successes.of(
        claims,
        workers,
        [one.claimed_epoch for one in claims],
        [one.claimed_epoch + 2 for one in claims],
        results or [None] * count,
        [2.0] * count,
    )
    return await rig.engine.leases.exchange(Ends(successes=successes), request)


async def settle_others(rig: Rig, *claims: Claim) -> Exchange:
    """The same, with a result."""
    return await settle(rig.engine, *(ending(one, result="1") for one in claims))


async def told(rig: Rig, job_id: int) -> list[Event]:
    return [one for one in await everything(rig.engine) if one.job_id == job_id]


async def test_it_is_written_whole(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    claims = await take(rig.engine, workers=1, ahead=1)
    visit = await succeed(rig, *claims)
    assert (visit.rejected, visit.claims, visit.turned) == (frozenset(), [], {})
    ahead = {claim.id: claim.worker is None for claim in claims}
    for claim in claims:
        record = await look(rig, claim.id)
        assert (record.state, record.result, record.error) == (JobState.SUCCEEDED, None, None)
        assert (record.lease_expires_at, record.heartbeat_at) == (None, None)
        (attempt,) = record.attempts
        assert (attempt.attempt, attempt.node) == (1, "north")
        assert (attempt.outcome, attempt.error) == (AttemptOutcome.SUCCEEDED, None)
        assert attempt.worker == (9 if ahead[claim.id] else 1)
        assert record.started_at is not None
        assert record.finished_at is not None
        if ahead[claim.id]:  # of the other one the claim knew since when
            assert (record.finished_at - record.started_at).total_seconds() == pytest.approx(2)
    counts = await rig.engine.queue.counts()
    assert (counts.by_state[JobState.SUCCEEDED], counts.by_state[JobState.QUEUED]) == (2, 0)


async def test_each_is_told_once_that_it_started_and_that_it_succeeded(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob(kind) for kind in ("a", "a", "b", "a")])
    given, marked, *others = await take(rig.engine, workers=1, ahead=3)
    hold = Hold(marked.id, marked.token, 2, marked.claimed_epoch)
    await rig.engine.leases.renew([hold], None)
    await succeed(rig, given, marked, *others)
    for claim in (given, marked, *others):
        events = await told(rig, claim.id)
        start = ["job.started"] if claim is given else ["job.assigned", "job.started"]
        assert [one.type for one in events] == ["job.enqueued", *start, "job.succeeded"]
        worker = {given.id: 1, marked.id: 2}.get(claim.id, 9)
        assert events[-2].data == {"attempt": 1, "node": "north", "worker": worker}
        assert (events[-1].kind, events[-1].data) == (claim.kind, {"attempt": 1})


@pytest.mark.parametrize("end", [succeed, settle_others])
async def test_only_what_stands_in_a_lease_of_its_token_changes(
    rig: Rig, end: Callable[..., Awaitable[Exchange]]
) -> None:
    await put(rig.engine, *[0] * 5)
    ended, stranger, good, given_back, left = await take(rig.engine, workers=3, ahead=2)
    await end(rig, ended)
    await settle(rig.engine, ending(given_back, JobState.QUEUED, AttemptOutcome.RELEASED))
    again = await take_one(rig.engine)
    wrong = [ended, stranger._replace(token=uuid4()), given_back, good._replace(id=999_999)]
    visit = await end(rig, *wrong, good)
    assert visit.rejected == {ended.id, stranger.id, given_back.id, 999_999}
    states = [await state_of(rig.engine, one.id) for one in (ended, stranger, good, again, left)]
    assert [state.value for state in states] == [
        "succeeded", "running", "succeeded", "running", "assigned",
    ]  # fmt: skip
    assert (await end(rig, again, left, stranger)).rejected == frozenset()


async def test_claims_of_several_calls_and_nodes_end_together(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob(kind) for kind in "abab" * 3])
    claims = [
        one
        for node in ("north", "south", "east")
        for one in await take(rig.engine, workers=2, ahead=2, node=node)
    ]
    mixed = claims[::2] + claims[1::2]
    assert (await succeed(rig, *mixed[:7])).rejected == frozenset()
    assert (await succeed(rig, *mixed)).rejected == {one.id for one in mixed[:7]}
    for claim, node in zip(claims, ["north"] * 4 + ["south"] * 4 + ["east"] * 4, strict=True):
        (attempt,) = (await look(rig, claim.id)).attempts
        assert (attempt.node, attempt.outcome) == (node, AttemptOutcome.SUCCEEDED)


async def test_other_ends_and_a_claim_go_with_them(rig: Rig) -> None:
    await put(rig.engine, *[0] * 4)
    first, second, third = await take(rig.engine, workers=3)
    request = ClaimRequest(uuid4(), "north", (1, 2), 0, 30.0)
    successes = Successes.of(
        [first], [1], [first.claimed_epoch], [first.claimed_epoch], [None], [0.0]
    )
    others = [ending(second, result="[1]"), ending(third, JobState.QUEUED, delay_seconds=0)]
    visit = await rig.engine.leases.exchange(Ends(others, successes), request)
    assert visit.rejected == frozenset()
    assert sorted(one.id for one in visit.claims) == sorted({third.id, first.id + 3})
    assert await state_of(rig.engine, first.id) is JobState.SUCCEEDED
    assert (await look(rig, second.id)).result == "[1]"


async def test_results_are_kept_each_with_its_own_job(rig: Rig) -> None:
    await put(rig.engine, *[0] * 3)
    claims = await take(rig.engine, workers=3)
    texts = ["null", '"a \\"quoted\\" \\n text"', '{"a": [1.5]}']
    await succeed(rig, *claims, results=texts)
    for claim, text in zip(claims, texts, strict=True):
        result = (await look(rig, claim.id)).result
        assert result is not None
        assert json.loads(result) == json.loads(text)


async def test_a_result_that_cannot_be_stored_undoes_the_whole_batch(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    claims = await take(rig.engine, workers=2)
    with pytest.raises(InputRefused):
        await succeed(rig, *claims, results=["1", "{"])
    assert [await state_of(rig.engine, one.id) for one in claims] == [JobState.RUNNING] * 2
    assert (await succeed(rig, *claims)).rejected == frozenset()


async def test_a_target_is_passed_on(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a", target="t")] * 2 + [NewJob("a", target="u")])
    claims = await take(rig.engine, workers=3)
    assert [claim.target for claim in claims] == ["t", "u"]
    request = ClaimRequest(uuid4(), "north", (1, 2), 0, 30.0)
    visit = await succeed(rig, *claims, request=request)
    assert (visit.rejected, [one.target for one in visit.claims]) == (frozenset(), ["t"])
    for claim in claims:
        succeeded = (await told(rig, claim.id))[-1]
        assert (succeeded.type, succeeded.target) == ("job.succeeded", claim.target)


async def test_a_request_to_its_holder_is_gone_with_it(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await rig.engine.control.apply(Action.CANCEL, claim.id)
    assert (await succeed(rig, claim)).turned == {}
    record = await look(rig, claim.id)
    assert (record.state, record.request) == (JobState.SUCCEEDED, None)


async def test_what_an_earlier_attempt_left_is_gone_but_its_history(rig: Rig) -> None:
    await put(rig.engine, 0)
    error = json.dumps({"type": "Boom", "message": "it broke"})
    claim = await take_one(rig.engine)
    await rig.engine.leases.note_progress([ProgressNote(claim.id, claim.token, 40, "so", "{}")])
    await settle(
        rig.engine,
        ending(claim, JobState.QUEUED, delay_seconds=0, error=error, log="old", reason="so"),
    )
    again = await take_one(rig.engine)
    assert (await succeed(rig, again)).rejected == frozenset()
    record = await look(rig, claim.id)
    assert (record.error, record.reason, record.progress_note) == (None, None, None)
    assert [one.outcome for one in record.attempts] == [
        AttemptOutcome.RETRYING,
        AttemptOutcome.SUCCEEDED,
    ]
    assert [one.log for one in record.attempts] == ["old", None]


async def test_a_second_sending_is_rejected_and_known_as_written(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await succeed(rig, claim)
    assert (await succeed(rig, claim)).rejected == {claim.id}
    assert await rig.engine.leases.settled_already([ending(claim)]) == {claim.id}


async def test_a_reaped_job_is_not_ended(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    rig.expire(claim.id)
    await rig.engine.leases.reap(reap_by("requeue", 9, 10))
    assert (await succeed(rig, claim)).rejected == {claim.id}
    assert await state_of(rig.engine, claim.id) is JobState.QUEUED


@pytest.mark.parametrize("own", [True, False])
async def test_its_message_is_made(rig: Rig, own: bool) -> None:
    urls = {kind: f"https://{kind}.example/hook" for kind in ("own", "all")}
    rules = {} if own else {"": KindRule(webhook=urls["all"])}
    await rig.engine.nodes.declare_kinds(rules)
    await rig.engine.jobs.enqueue([NewJob("a"), NewJob("a", webhook=urls["own"])])
    claims = await take(rig.engine, workers=2)
    await succeed(rig, *claims)
    found = rig.raw("select job_id, url, type, attempt from webhooks order by job_id")
    made = [(claims[1].id, urls["own"], "job.succeeded", 1)]
    if not own:
        made.insert(0, (claims[0].id, urls["all"], "job.succeeded", 1))
    assert found == made
