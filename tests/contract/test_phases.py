"""Phases of jobs in the store: begun, finished, kept; never written by who has lost the lease."""

import pytest

from musterd.store.jobs import JobFilter, NewJob
from musterd.store.leases import Claim, ProgressNote
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.phases import PhaseEnd, PhaseState
from musterd.store.report import current, overall
from tests.contract.job_tools import ending, settle, state_of, take, take_one
from tests.contract.phase_tools import (
    NAMES,
    begun,
    look,
    reap,
    shown,
    start_of,
    step_of,
    stolen,
    tell_names,
    told,
    types_told,
)
from tests.contract.rigs import Rig

FAILED = '{"type": "Boom", "message": "it broke"}'


async def test_phases_begin_go_on_and_end_with_their_job(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    assert await shown(engine, claim.id) == "running pending pending"
    taken = await engine.phases.advance([step_of(claim, "download", "process", result='{"a": 1}')])
    assert taken == {claim.id}
    record = await look(engine, claim.id)
    assert (overall(record), current(record)) == (33, "process")
    assert [phase.state for phase in record.phases] == ["succeeded", "running", "pending"]
    assert await engine.phases.advance([step_of(claim, "process", "upload")]) == {claim.id}
    assert overall(await look(engine, claim.id)) == 67
    end = PhaseEnd("upload", PhaseState.SUCCEEDED, "7", names=NAMES)
    await settle(engine, ending(claim, result="7", phase=end))
    record = await look(engine, claim.id)
    assert (record.state, overall(record), current(record)) == (JobState.SUCCEEDED, 100, None)
    assert [phase.result for phase in record.phases] == ['{"a": 1}', None, "7"]
    assert [phase.attempts for phase in record.phases] == [1, 1, 1]
    for phase in record.phases:
        assert phase.started_at is not None
        assert phase.finished_at is not None
        assert phase.finished_at >= phase.started_at
    assert await types_told(engine, claim.id) == [
        *("enqueued", "started", "phase_completed", "phase_completed", "phase_completed"),
        "succeeded",
    ]
    completed = [each.data for each in await told(engine, claim.id) if "phase" in each.type]
    assert completed == [
        {"attempt": 1, "phase": name, "progress": 100, "overall": whole}
        for name, whole in zip(NAMES, (33, 67, 100), strict=True)
    ]


async def test_what_is_sent_again_is_written_counted_and_told_once(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    await engine.leases.note_progress([note(claim, "download", 20.0, 60.0)])
    assert await engine.phases.begin([start_of(claim)]) == {claim.id: {}}
    phase = (await look(engine, claim.id)).phases[0]
    assert (phase.attempts, phase.progress) == (1, 60.0)
    step = step_of(claim, "download", "process", result="1", spent='{"tokens": 5}')
    assert await engine.phases.advance([step]) == {claim.id}
    first = await look(engine, claim.id)
    assert await engine.phases.advance([step]) == {claim.id}
    again = await look(engine, claim.id)
    assert again.phases == first.phases
    assert again.spent is not None
    assert "tokens" in again.spent
    await settle(
        engine, ending(claim, phase=PhaseEnd("download", PhaseState.SUCCEEDED, "2", names=NAMES))
    )
    assert (await look(engine, claim.id)).phases[0].result == "1"
    assert (await types_told(engine, claim.id)).count("phase_completed") == 1


async def test_who_has_lost_the_lease_writes_nothing(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    before = await look(engine, claim.id)
    assert await engine.phases.begin([stolen(start_of(claim))]) == {}
    assert await engine.phases.advance([stolen(step_of(claim, "download", "process"))]) == set()
    end = PhaseEnd("download", PhaseState.SUCCEEDED, "1", names=NAMES)
    done = await settle(engine, stolen(ending(claim, phase=end)))
    assert done.rejected == {claim.id}
    assert await look(engine, claim.id) == before
    rig.pass_time(60)
    await reap(engine)
    assert await engine.phases.begin([start_of(claim)]) == {}
    assert await engine.phases.advance([step_of(claim, "download", "process")]) == set()
    assert (await settle(engine, ending(claim, phase=end))).rejected == {claim.id}
    assert await shown(engine, claim.id) == "pending pending pending"
    assert "phase_completed" not in await types_told(engine, claim.id)


async def test_of_several_in_one_call_each_is_taken_or_refused_by_itself(rig: Rig) -> None:
    engine = rig.engine
    await engine.jobs.enqueue([NewJob("video")] * 3)
    claims = await take(engine, workers=3)
    starts = [start_of(one) for one in reversed(claims)]
    done = await engine.phases.begin([stolen(starts[0]), *starts[1:]])
    assert done == {claims[0].id: {}, claims[1].id: {}}
    steps = [step_of(one, "download", "process", result=str(one.id)) for one in claims]
    taken = await engine.phases.advance([steps[1], stolen(steps[0]), steps[2]])
    assert claims[1].id in taken
    assert claims[0].id not in taken
    assert (await look(engine, claims[1].id)).phases[0].result == str(claims[1].id)


async def test_finished_phases_are_kept_through_a_retry(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    await engine.phases.advance([step_of(claim, "download", "process", result='"got it"')])
    end = PhaseEnd("process", PhaseState.FAILED, None, 40.0)
    retry = ending(claim, JobState.QUEUED, delay_seconds=0.0, error=FAILED, phase=end, percent=46.7)
    await settle(engine, retry)
    assert await shown(engine, claim.id) == "succeeded pending pending"
    again = await take_one(engine)
    assert overall(await look(engine, claim.id)) == 33  # before anything is known of this attempt
    assert await engine.phases.begin([start_of(again)]) == {claim.id: {"download": '"got it"'}}
    record = await look(engine, claim.id)
    assert [phase.attempts for phase in record.phases] == [1, 2, 0]
    assert [phase.state for phase in record.phases] == ["succeeded", "running", "pending"]
    assert (overall(record), current(record)) == (33, "process")
    await settle(engine, ending(again, JobState.FAILED, error=FAILED, phase=end))
    assert await shown(engine, claim.id) == "succeeded failed pending"


async def test_a_phase_is_fenced_though_others_of_its_claim_are_in_hand(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("video")] * 2)
    given_back, other = await take(rig.engine, workers=2)
    await rig.engine.phases.begin([start_of(given_back), start_of(other)])
    await settle(rig.engine, ending(given_back, JobState.QUEUED, AttemptOutcome.RELEASED))
    shown_before = await shown(rig.engine, given_back.id)
    assert await rig.engine.phases.advance([step_of(given_back, "download", "process")]) == set()
    assert await rig.engine.phases.begin([start_of(given_back)]) == {}
    end = PhaseEnd("download", PhaseState.SUCCEEDED, "1", names=NAMES)
    await settle(rig.engine, ending(given_back, JobState.FAILED, phase=end))
    assert await shown(rig.engine, given_back.id) == shown_before
    assert (await look(rig.engine, other.id)).state is JobState.RUNNING


async def test_finished_phases_are_kept_when_the_lease_is_lost(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    await engine.phases.advance([step_of(claim, "download", "process")])
    rig.pass_time(60)
    await reap(engine)
    assert await shown(engine, claim.id) == "succeeded pending pending"
    again = await take_one(engine)
    assert await engine.phases.begin([start_of(again)]) == {claim.id: {"download": None}}
    assert await engine.phases.advance([step_of(claim, "process", "upload")]) == set()
    assert await shown(engine, claim.id) == "succeeded running pending"


async def test_finished_phases_are_kept_through_pause_failure_and_resume(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    end = PhaseEnd(
        "download", PhaseState.SUCCEEDED, "1", names=NAMES
    )  # it ended while it was told to pause
    await settle(engine, ending(claim, JobState.PAUSED, phase=end))
    assert await shown(engine, claim.id) == "succeeded pending pending"
    assert (await engine.control.apply(Action.RESUME, claim.id)).allowed
    again = await take_one(engine)
    assert await engine.phases.begin([start_of(again)]) == {claim.id: {"download": "1"}}
    failed = PhaseEnd("process", PhaseState.FAILED)
    await settle(engine, ending(again, JobState.FAILED, error=FAILED, phase=failed))
    assert (await engine.control.apply(Action.RESUME, claim.id)).allowed
    assert await shown(engine, claim.id) == "succeeded pending pending"
    last = await take_one(engine)
    begin = await engine.phases.begin([start_of(last)])
    assert begin == {claim.id: {"download": "1"}}


async def test_all_phases_may_be_finished_when_an_attempt_begins(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine, ("only",))
    end = PhaseEnd("only", PhaseState.SUCCEEDED, "1")
    await settle(engine, ending(claim, JobState.PAUSED, phase=end))
    await engine.control.apply(Action.RESUME, claim.id)
    again = await take_one(engine)
    begin = await engine.phases.begin([start_of(again, ("only",))])
    assert begin == {claim.id: {"only": "1"}}
    assert (await look(engine, claim.id)).phases[0].attempts == 1


async def test_a_kind_may_have_other_phases_by_the_next_attempt(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    await engine.phases.advance([step_of(claim, "download", "process", result="1")])
    await engine.phases.advance([step_of(claim, "process", "upload", result="2")])
    await settle(engine, ending(claim, JobState.QUEUED, delay_seconds=0.0, error=FAILED))
    again = await take_one(engine)
    names = ("check", "process", "publish")
    assert await engine.phases.begin([start_of(again, names)]) == {claim.id: {"process": "2"}}
    record = await look(engine, claim.id)
    assert [(phase.name, phase.state) for phase in record.phases] == [
        *(("check", "running"), ("process", "succeeded"), ("publish", "pending"))
    ]


async def test_a_job_claimed_ahead_is_running_once_its_phases_are(rig: Rig) -> None:
    engine = rig.engine
    await engine.jobs.enqueue([NewJob("video")])
    (claim,) = await take(engine, workers=0, ahead=1)
    assert await state_of(engine, claim.id) is JobState.ASSIGNED
    await engine.phases.begin([start_of(claim)._replace(worker=4)])
    record = await look(engine, claim.id)
    assert (record.state, record.worker) == (JobState.RUNNING, 4)
    assert record.started_at is not None
    await engine.phases.begin([start_of(claim)])
    await settle(engine, ending(claim))
    assert await types_told(engine, claim.id) == ["enqueued", "assigned", "started", "succeeded"]


def note(claim: Claim, phase: str, percent: float, phase_percent: float) -> ProgressNote:
    return ProgressNote(claim.id, claim.token, percent, "so far", None, phase, phase_percent)


async def test_progress_is_that_of_the_phase_and_of_the_whole(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    for phase, percent, at, whole in (
        ("download", 50 / 3, 50.0, 17),
        ("process", 125 / 3, 25.0, 42),
        ("upload", 280 / 3, 80.0, 93),
    ):
        assert await engine.leases.note_progress([note(claim, phase, percent, at)]) == {claim.id}
        record = await look(engine, claim.id)
        assert (overall(record), current(record)) == (whole, phase)
        assert record.phases[NAMES.index(phase)].progress == at
        if phase != "upload":
            next_ = NAMES[NAMES.index(phase) + 1]
            await engine.phases.advance([step_of(claim, phase, next_)])
            assert (await look(engine, claim.id)).progress_note is None


async def test_a_note_that_its_phase_has_overtaken_changes_nothing(rig: Rig) -> None:
    engine = rig.engine
    claim = await begun(engine)
    await engine.phases.advance([step_of(claim, "download", "process")])
    before = await look(engine, claim.id)
    assert await engine.leases.note_progress([note(claim, "download", 20.0, 60.0)]) == set()
    assert await look(engine, claim.id) == before
    assert "progress" not in await types_told(engine, claim.id)


@pytest.mark.parametrize("how", ["pending", "queued", "paused", "running"])
async def test_cancel_marks_every_unfinished_phase_canceled(rig: Rig, how: str) -> None:
    engine = rig.engine
    await tell_names(engine)
    if how in ("pending", "queued"):
        (job_id,) = await engine.jobs.enqueue([NewJob("video", hold=how == "pending")])
        assert await shown(engine, job_id) == "pending pending pending"
        await engine.control.apply(Action.CANCEL, job_id)
        assert await shown(engine, job_id) == "canceled canceled canceled"
        return
    claim = await begun(engine)
    await engine.phases.advance([step_of(claim, "download", "process")])
    if how == "paused":
        await settle(engine, ending(claim, JobState.PAUSED))
        assert await shown(engine, claim.id) == "succeeded pending pending"
        await engine.control.apply(Action.CANCEL, claim.id)
    else:
        await engine.control.apply(Action.CANCEL, claim.id)
        phase = PhaseEnd("process", PhaseState.RUNNING, None, 20.0)
        await settle(engine, ending(claim, JobState.CANCELED, phase=phase))
    assert await shown(engine, claim.id) == "succeeded canceled canceled"
    assert await state_of(engine, claim.id) is JobState.CANCELED


async def test_a_job_of_a_kind_that_nobody_has_spoken_of_has_no_phases(rig: Rig) -> None:
    engine = rig.engine
    (job_id,) = await engine.jobs.enqueue([NewJob("video")])
    assert await shown(engine, job_id) == ""
    await tell_names(engine)
    assert await shown(engine, job_id) == "pending pending pending"
    await tell_names(engine, ())
    assert await shown(engine, job_id) == ""


async def test_a_list_of_jobs_has_the_phases_of_each(rig: Rig) -> None:
    engine = rig.engine
    first = await begun(engine)
    await engine.phases.advance([step_of(first, "download", "process")])
    second = await begun(engine, ("a", "b"))
    await engine.jobs.enqueue([NewJob("report")])
    jobs = await engine.jobs.find(JobFilter())
    assert [[phase.name for phase in job.phases] for job in jobs] == [[], ["a", "b"], [*NAMES]]
    assert jobs[1].id == second.id
