"""What others do to a job is told as what its holder does: lost leases, actions on one or many."""

from typing import Any

import pytest

from musterd.store.control import Selection
from musterd.store.lifecycle import EFFECTS, LEASED, Action, JobState
from tests.contract.asking import put_one
from tests.contract.event_tools import since, told
from tests.contract.job_tools import ending, reap_by, settle, take, take_one
from tests.contract.rigs import Rig
from tests.contract.test_laws import bring_to
from tests.contract.test_reaping import reap_all

ERROR = '{"type": "Boom", "message": "it broke"}'
LOST = "its lease was lost"


@pytest.mark.parametrize(
    ("on_lost", "type_", "data"),
    [
        ("requeue", "requeued", {"outcome": "lost", "reason": LOST}),
        ("fail", "failed", {}),
        ("pause", "paused", {"reason": LOST}),
    ],
)
async def test_a_lost_lease_is_told(
    rig: Rig, on_lost: str, type_: str, data: dict[str, Any]
) -> None:
    plain, with_target = (
        await put_one(rig.engine),
        await put_one(rig.engine, target="t", priority=1),
    )
    await take(rig.engine, workers=2)
    await take(rig.engine, workers=2)
    await reap_all(rig, reap_by(on_lost))
    assert await rig.engine.leases.reap(reap_by(on_lost)) == []
    for job_id in (plain, with_target):
        ((found, given),) = await since(rig.engine, job_id, 2)
        error = given.pop("error", {"type": "lease_lost"})
        assert (found, given, error["type"]) == (type_, {"attempt": 1, **data}, "lease_lost")


@pytest.mark.parametrize("request_", [Action.CANCEL, Action.PAUSE])
async def test_a_lost_lease_does_what_was_asked_and_tells_that(rig: Rig, request_: Action) -> None:
    job_id = await put_one(rig.engine)
    await take_one(rig.engine)
    await rig.engine.control.apply(request_, job_id)
    state = (await reap_all(rig, reap_by("requeue")))[job_id]
    ((type_, data),) = await since(rig.engine, job_id, 2)
    assert (type_, data["attempt"]) == (state.value, 1)
    assert data["reason"] in ("canceled on request", "Job was interrupted by user")


TOLD_OF = {Action.RESUME: "resumed", Action.RELEASE: "released", Action.CLEAR: "cleared"}
WHY = {
    Action.CANCEL: "canceled on request",
    Action.PAUSE: "Job was interrupted by user",
    Action.CLEAR: "cleared on request",
}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("action", Action)
async def test_an_action_is_told_if_it_was_done(rig: Rig, action: Action, many: bool) -> None:
    for state in JobState:
        job_id = await bring_to(rig, state)
        seen = len(await told(rig.engine, job_id))
        if many:
            await rig.engine.control.apply_many(action, [job_id], Selection(states=(state,)))
        else:
            await rig.engine.control.apply(action, job_id)
        found = await since(rig.engine, job_id, seen)
        effect = EFFECTS.get((action, state))
        if effect is None or state in LEASED:
            assert found == [], (action, state)
        elif effect in (JobState.CANCELED, JobState.PAUSED):
            attempt = {"attempt": 1} if state is JobState.PAUSED else {}
            assert found == [(effect.value, {**attempt, "reason": WHY[action]})]
        else:
            assert found == [(TOLD_OF[action], {})]
        rig.raw(f"delete from job_rows where id >= {job_id - 1}")


async def test_to_clear_twice_is_told_once_and_again_after_a_resume(rig: Rig) -> None:
    job_id = await bring_to(rig, JobState.FAILED)
    seen = len(await told(rig.engine, job_id))
    for action in (Action.CLEAR, Action.CLEAR, Action.RESUME):
        await rig.engine.control.apply(action, job_id)
    await settle(rig.engine, ending(await take_one(rig.engine), JobState.FAILED, error=ERROR))
    await rig.engine.control.apply(Action.CLEAR, job_id)
    types = [type_ for type_, _ in await since(rig.engine, job_id, seen)]
    assert types == ["cleared", "resumed", "started", "failed", "cleared"]
