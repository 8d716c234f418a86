"""Phases whose beginning a store has lost: it was put back in time while they went on."""

from musterd.store.lifecycle import Action, JobState
from musterd.store.phases import PhaseEnd, PhaseState
from musterd.store.report import overall
from tests.contract.job_tools import ending, settle, take_one
from tests.contract.phase_tools import NAMES, begun, look, shown, start_of, step_of, told
from tests.contract.rigs import Rig


async def test_a_phase_is_finished_though_the_store_has_lost_that_it_began(rig: Rig) -> None:
    """A standby took over that had the claim, but not what came next."""
    engine = rig.engine
    claim = await begun(engine)
    rig.raw("delete from job_phases")
    step = step_of(claim, "download", "process", result='"got it"')
    for _ in range(2):  # it is sent again
        assert await engine.phases.advance([step]) == {claim.id}
    assert overall(await look(engine, claim.id)) == 33
    assert await engine.phases.begin([start_of(claim)]) == {claim.id: {"download": '"got it"'}}
    assert await shown(engine, claim.id) == "succeeded running pending"
    rig.raw("delete from job_phases")
    end = PhaseEnd(
        "process", PhaseState.SUCCEEDED, "2", names=NAMES
    )  # it ended while it was told to pause
    await settle(engine, ending(claim, JobState.PAUSED, phase=end))
    assert (await engine.control.apply(Action.RESUME, claim.id)).allowed
    again = await take_one(engine)
    assert await engine.phases.begin([start_of(again)]) == {claim.id: {"process": "2"}}
    completed = [each.data for each in await told(engine, claim.id) if "phase" in each.type]
    assert [(each["phase"], each["overall"]) for each in completed] == [
        *(("download", 33), ("process", 33))
    ]
