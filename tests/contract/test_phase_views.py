"""The views of jobs show of phases what the programs show; and of webhooks how they stand."""

import json
from typing import Any

import pytest

from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.phases import KindRule, PhaseState, rounded
from musterd.store.report import current, job_object, overall
from tests.contract.job_tools import ending, settle, take, take_one
from tests.contract.phase_tools import begun, look, step_of, tell_names
from tests.contract.rigs import PostgresRig, Rig

STORED = ("succeeded", "running", "failed", "pending")


async def job_in(rig: Rig, state: JobState) -> int:
    """A job that has come to be in this state."""
    engine = rig.engine
    (job_id,) = await engine.jobs.enqueue([NewJob("video", hold=state is JobState.PENDING)])
    if state is JobState.ASSIGNED:
        await take(engine, workers=0, ahead=1)
    elif state is JobState.RUNNING:
        await take_one(engine)
    elif state not in (JobState.PENDING, JobState.QUEUED):
        await settle(engine, ending(await take_one(engine), state))
    return job_id


def view_of(rig: Rig, job_id: int) -> dict[str, Any]:
    """Its progress as the view has it, in the shape of PostgreSQL's."""
    if rig.engine.name == "postgresql":
        return dict(rig.raw(f"select progress from jobs where id = {job_id}")[0][0])
    columns = "progress, phase, phases, progress_note"
    ((whole, phase, phases, note),) = rig.raw(f"select {columns} from jobs where id = {job_id}")
    return {"overall": whole, "phase": phase, "phases": json.loads(phases), "note": note}


async def object_of(rig: Rig, job_id: int) -> dict[str, Any]:
    """The same as the programs have it."""
    record = await look(rig.engine, job_id)
    phases = [
        {
            "name": phase.name,
            "state": phase.state.value,
            "progress": rounded(phase.progress),
            "result": None if phase.result is None else json.loads(phase.result),
        }
        for phase in record.phases
    ]
    whole = {"overall": overall(record), "phase": current(record), "phases": phases}
    return {**whole, "note": record.progress_note}


@pytest.mark.parametrize("state", list(JobState))
async def test_the_view_names_every_phase_as_the_programs_do(rig: Rig, state: JobState) -> None:
    job_id = await job_in(rig, state)
    for place, stored in enumerate(STORED, start=1):
        result = "'{\"a\": 1}'" if stored == PhaseState.SUCCEEDED else "null"
        columns = "(job_id, place, name, state, progress, result, attempts)"
        values = f"({job_id}, {place}, '{stored}', '{stored}', 37.5, {result}, 1)"
        rig.raw(f"insert into job_phases {columns} values {values}")
    assert view_of(rig, job_id) == await object_of(rig, job_id)


async def test_a_job_that_never_started_has_the_phases_of_its_kind(rig: Rig) -> None:
    await tell_names(rig.engine)
    job_id = await job_in(rig, JobState.QUEUED)
    assert view_of(rig, job_id) == await object_of(rig, job_id)
    assert [phase["state"] for phase in view_of(rig, job_id)["phases"]] == ["pending"] * 3
    await rig.engine.control.apply(Action.CANCEL, job_id)
    assert [phase["state"] for phase in view_of(rig, job_id)["phases"]] == ["canceled"] * 3


async def test_a_job_of_a_plain_kind_has_none(rig: Rig) -> None:
    job_id = await job_in(rig, JobState.SUCCEEDED)
    assert view_of(rig, job_id) == {"overall": 100, "phase": None, "phases": [], "note": None}


def webhook_of(rig: Rig, job_id: int) -> Any:
    found = rig.raw(f"select webhook from jobs where id = {job_id}")[0][0]
    return json.loads(found) if isinstance(found, str) else found


async def test_the_view_tells_where_the_end_of_a_job_is_told(rig: Rig) -> None:
    job_id = await job_in(rig, JobState.QUEUED)
    assert webhook_of(rig, job_id) is None
    await rig.engine.nodes.declare_kinds({"": KindRule(webhook="https://all.example")})
    waiting = {"url": "https://all.example", "sent_at": None, "attempts": 0}
    assert webhook_of(rig, job_id) == waiting
    await rig.engine.nodes.declare_kinds({"video": KindRule(webhook="https://video.example")})
    assert webhook_of(rig, job_id) == {**waiting, "url": "https://video.example"}
    await settle(rig.engine, ending(await take_one(rig.engine)))
    is_postgres = rig.engine.name == "postgresql"
    ended = "clock_timestamp()" if is_postgres else "1800000000000000"
    rig.raw(f"update webhooks set state = 'delivered', tries = 2, ended_at = {ended}")
    sent = webhook_of(rig, job_id)
    assert (sent["url"], sent["attempts"]) == ("https://video.example", 2)
    assert sent["sent_at"].startswith("20")


async def test_jobs_without_payload_show_phases_without_their_results(
    postgres_rig: PostgresRig,
) -> None:
    rig = postgres_rig
    claim = await begun(rig.engine)
    await rig.engine.phases.advance([step_of(claim, "download", "process", result='"secret"')])
    ((whole, phase, phases),) = rig.raw("select progress, phase, phases from jobs_without_payload")
    assert (whole, phase) == (33, "process")
    assert phases == [
        {"name": "download", "state": "succeeded", "progress": 100},
        {"name": "process", "state": "running", "progress": 0},
        {"name": "upload", "state": "pending", "progress": 0},
    ]
    rig.raw("create role reader nologin")
    try:
        rig.raw("grant usage on schema musterd to reader")
        rig.raw("grant select on jobs_without_payload to reader")
        rig.raw("set role reader; select phases, webhook from musterd.jobs_without_payload")
    finally:
        rig.raw("drop owned by reader; drop role reader")


async def test_a_plain_job_can_be_inserted_into_the_view(postgres_rig: PostgresRig) -> None:
    postgres_rig.raw("insert into jobs (kind, payload, target) values ('video', '{}', 't')")
    assert len(await take(postgres_rig.engine)) == 1


async def test_the_view_says_what_the_job_object_says(rig: Rig) -> None:
    await rig.engine.nodes.declare_kinds({}, tenant="acme")
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("report")])
    first = await take_one(rig.engine)
    again = ending(first, JobState.QUEUED, AttemptOutcome.RETRYING)._replace(delay_seconds=0.0)
    await settle(rig.engine, again)
    rig.pass_time(5)
    second = await take_one(rig.engine)
    columns = "tenant, attempts, lease_owner, updated_at, heartbeat_at"
    for state in ("running", "succeeded"):
        ((tenant, attempts, owner, updated, heard),) = rig.raw(f"select {columns} from jobs")
        record = await look(rig.engine, job_id)
        shown = job_object(record, "acme", None)
        text = attempts if isinstance(attempts, str) else json.dumps(attempts)
        found: list[dict[str, Any]] = json.loads(text)
        assert (record.state, tenant, owner) == (state, "acme", shown["lease_owner"])
        names = ("attempt", "worker", "node", "outcome", "error", "log")
        assert [[one[name] for name in names] for one in found] == [
            [one[name] for name in names]
            for one in shown["attempts"]  # type: ignore[attr-defined]
        ]
        assert [one["outcome"] for one in found] == ["retrying", None if heard else "succeeded"]
        assert record.updated_at is not None
        assert record.updated_at >= max(record.created_at, record.finished_at or record.created_at)
        assert str(updated)[:19].replace("T", " ") == str(record.updated_at)[:19]
        if record.state is JobState.RUNNING:
            await settle(rig.engine, ending(second))


async def test_an_action_on_a_waiting_job_updates_it(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("report")])
    rig.pass_time(60)
    await rig.engine.control.apply(Action.PAUSE, job_id)
    record = await look(rig.engine, job_id)
    assert record.updated_at is not None
    assert (record.updated_at - record.created_at).total_seconds() >= 59
