"""The message of a job's end is made with it, for whoever wants it."""

from typing import Any

from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.phases import KindRule
from tests.contract.event_tools import told, types_told
from tests.contract.job_tools import ending, put, reap_by, settle, take, take_one
from tests.contract.rigs import Rig
from tests.contract.test_reaping import reap_all

ERROR = '{"type": "Boom", "message": "it broke"}'
ALL, OF_KIND, OWN = (f"https://{name}.example/hook" for name in ("all", "kind", "own"))


def messages(rig: Rig) -> list[tuple[Any, ...]]:
    return rig.raw("select job_id, url, type, attempt, state from webhooks order by id")


async def test_nobody_wants_to_know(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    claims = await take(rig.engine, 2)
    await rig.engine.nodes.declare_kinds({"report": KindRule(phases=("one",))})
    await settle(rig.engine, *[ending(claim) for claim in claims])
    assert messages(rig) == []


async def test_a_job_s_own_url_goes_before_its_kind_s_and_that_before_everybody_s(
    rig: Rig,
) -> None:
    await rig.engine.nodes.declare_kinds(
        {"b": KindRule(webhook=OF_KIND), "c": KindRule(phases=("one",))}
    )
    made = await rig.engine.jobs.enqueue([NewJob(kind) for kind in ("a", "b", "b", "c")])
    rig.raw(f"update job_rows set webhook = '{OWN}' where id = {made[2]}")
    claims = await take(rig.engine, 4)
    await settle(rig.engine, ending(claims[0]))
    await rig.engine.nodes.declare_kinds({"": KindRule(webhook=ALL)})
    await settle(rig.engine, *[ending(claim) for claim in claims[1:]])
    assert sorted(messages(rig)) == [
        (made[1], OF_KIND, "job.succeeded", 1, "waiting"),
        (made[2], OWN, "job.succeeded", 1, "waiting"),
        (made[3], ALL, "job.succeeded", 1, "waiting"),
    ]


async def test_each_end_makes_one_message_and_nothing_else_does(rig: Rig) -> None:
    await rig.engine.nodes.declare_kinds({"": KindRule(webhook=ALL)})
    job_id, other, waiting = await put(rig.engine, 2, 1, 0)
    first = await take_one(rig.engine)
    await settle(rig.engine, ending(first, JobState.QUEUED, delay_seconds=0, error=ERROR))
    await settle(rig.engine, ending(await take_one(rig.engine), JobState.PAUSED))
    assert messages(rig) == []
    await rig.engine.control.apply(Action.RESUME, job_id)
    third = await take_one(rig.engine)
    failed = ending(third, JobState.FAILED, error=ERROR)
    await settle(rig.engine, failed)
    await settle(rig.engine, failed)
    await rig.engine.control.apply(Action.CLEAR, job_id)
    await rig.engine.control.apply(Action.CANCEL, waiting)
    await rig.engine.control.apply(Action.CANCEL, waiting)
    assert (await take_one(rig.engine)).id == other
    await reap_all(rig, reap_by("fail"))
    assert [row[:4] for row in messages(rig)] == [
        (job_id, ALL, "job.failed", 3),
        (waiting, ALL, "job.canceled", 0),
        (other, ALL, "job.failed", 1),
    ]


async def test_a_resumed_job_may_end_again(rig: Rig) -> None:
    await rig.engine.nodes.declare_kinds({"": KindRule(webhook=ALL)})
    (job_id,) = await put(rig.engine, 0)
    await settle(rig.engine, ending(await take_one(rig.engine), JobState.FAILED, error=ERROR))
    await rig.engine.control.apply(Action.RESUME, job_id)
    await settle(rig.engine, ending(await take_one(rig.engine)))
    assert [row[2:4] for row in messages(rig)] == [("job.failed", 1), ("job.succeeded", 2)]


async def test_nothing_is_sent_to_whoever_wants_nothing_more(rig: Rig) -> None:
    await rig.engine.nodes.declare_kinds({"": KindRule(webhook=ALL)})
    at = "1" if rig.engine.name == "sqlite" else "now()"
    rig.raw(f"insert into webhooks_gone (url, at) values ('{ALL}', {at})")
    settled, canceled, lost = await put(rig.engine, 2, 1, 0)
    await settle(rig.engine, ending(await take_one(rig.engine)))
    await rig.engine.control.apply(Action.CANCEL, canceled)
    await take_one(rig.engine)
    await reap_all(rig, reap_by("fail"))
    ends = {settled: "succeeded", canceled: "canceled", lost: "failed"}
    for job_id, end in ends.items():
        assert (await types_told(rig.engine, job_id))[-2:] == [end, "webhook_failed"]
        _, failed = (await told(rig.engine, job_id))[-1]
        assert (failed["url"], failed["attempts"]) == (ALL, 0)
        assert failed["error"].startswith("the receiver answered 410")
    assert {row[4] for row in messages(rig)} == {"failed"}
    rows = rig.raw("select error from webhooks where ended_at is not null")
    assert len(rows) == 3
