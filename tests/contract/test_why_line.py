"""Why a job does not run: limits, its place in the line, targets."""

from datetime import UTC, datetime
from random import Random

import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import Caps, Claim, ReapRequest, ReapRule
from musterd.store.lifecycle import JobState
from musterd.store.nodes import KnownKind
from musterd.store.reasons import Code
from musterd.store.why_facts import LINE_BOUND
from tests.contract.asking import ask, codes, first
from tests.contract.job_tools import ending, ids, put, reap_by, settle, take, visit
from tests.contract.rigs import Rig
from tests.contract.target_tools import put_target, take_all
from tests.support.beats import live_node

REAP = reap_by("requeue", 4, 100)


# -- limits


CAPS: Caps = (("narrow", 2),)
NARROW = {"narrow": KnownKind(max_running=2), "report": KnownKind()}


async def take_narrow(rig: Rig, workers: int, caps: Caps = CAPS) -> list[Claim]:
    return (await visit(rig.engine, workers, caps=caps)).claims


async def test_a_kind_at_its_limit_names_the_holders(rig: Rig) -> None:
    await live_node(rig.engine, kinds=NARROW)
    made = await put(rig.engine, *[0] * 4, kind="narrow")
    assert await codes(rig, made[1]) == ["next_up"]
    assert await codes(rig, made[2]) == ["kind_limit"], "the two before it will fill the kind"
    held = await take_narrow(rig, 4)
    assert ids(held) == made[:2]
    for place, job_id in enumerate(made[2:]):
        reason = await first(rig, job_id)
        assert reason.code is Code.KIND_LIMIT
        assert reason.what == {"limit": 2, "in_hand": 2, "before": place, "jobs": made[:2]}
        assert reason.who == "north"
    await settle(rig.engine, ending(held[0]))
    assert await codes(rig, made[2]) == ["next_up"]
    assert await codes(rig, made[3]) == ["kind_limit"]
    assert ids(await take_narrow(rig, 4)) == [made[2]]


async def test_a_parked_job_whose_limit_is_gone_says_so(rig: Rig) -> None:
    await live_node(rig.engine)
    _, job_id = await put(rig.engine, 0, 0)
    await take_narrow(rig, 2, (("report", 1),))
    assert await codes(rig, job_id) == ["kind_limit"]
    await rig.engine.leases.reap(ReapRequest({"report": ReapRule("requeue", 4)}, REAP.default, 100))
    assert await codes(rig, job_id) == ["next_up"]


# -- the line


async def test_the_position_is_the_number_of_claims_until_its_own(rig: Rig) -> None:
    rng = Random(7)
    for _ in range(6):
        jobs = [random_job(rng) for _ in range(rng.randint(1, 40))]
        made = await rig.engine.jobs.enqueue(jobs)
        places = {job_id: (await ask(rig, job_id)).position for job_id in made}
        claimed = ids(await take(rig.engine, workers=100))
        for job_id, place in places.items():
            if job_id not in claimed:
                assert place is None
                continue
            assert place is not None
            assert (place.number, place.of) == (claimed.index(job_id) + 1, len(claimed))
            assert place.is_exact


def random_job(rng: Random) -> NewJob:
    past = datetime.fromtimestamp(rng.randint(1_600_000_000, 1_600_000_005), UTC)
    delay = rng.choice([None, None, 5_000_000.0])
    run_at = past if delay is None and rng.random() < 0.5 else None
    return NewJob(
        rng.choice("abc"), priority=rng.randint(-2, 2), delay_seconds=delay, run_at=run_at
    )


async def test_beyond_the_bound_the_position_is_not_exact(rig: Rig) -> None:
    await live_node(rig.engine)
    made = await rig.engine.jobs.enqueue([NewJob("report")] * (LINE_BOUND + 5))
    last, at_bound = await ask(rig, made[-1]), await ask(rig, made[LINE_BOUND - 1])
    assert last.position is not None
    assert (last.position.text, last.position.is_exact) == ("number 10,000+ of 10,000+", False)
    assert at_bound.position is not None
    assert (at_bound.position.number, at_bound.position.is_exact) == (LINE_BOUND, True)


async def test_busy_workers_give_a_place_and_a_time(rig: Rig) -> None:
    measured = {"report": KnownKind(runs=100, mean_seconds=10.0)}
    await live_node(rig.engine, kinds=measured, max_count=2)
    made = await put(rig.engine, *[0] * 7)
    assert await codes(rig, made[1]) == ["next_up"]
    assert await codes(rig, made[2]) == ["workers_busy"]
    await take(rig.engine, workers=2)
    answer = await ask(rig, made[6])
    assert [one.code for one in answer.reasons] == [Code.WORKERS_BUSY]
    assert "all 2 workers are busy: it is number 5 of 5" in answer.reasons[0].text
    assert answer.start is not None
    assert answer.start.latest_seconds is not None
    # Two in hand and four before it on two workers: it starts after 30 s.
    assert answer.start.earliest_seconds <= 30 <= answer.start.latest_seconds
    assert answer.start.earliest_seconds > 24
    assert answer.start.latest_seconds < 31


async def test_a_kind_never_measured_gives_no_late_end(rig: Rig) -> None:
    await live_node(rig.engine, max_count=2)
    made = await put(rig.engine, *[0] * 3)
    answer = await ask(rig, made[2])
    assert answer.start is not None
    assert (answer.start.latest_seconds, answer.start.unmeasured) == (None, ("report",))


async def test_jobs_in_a_dead_nodes_hand_take_nobodys_time(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 5)
    await take(rig.engine, workers=4, node="dead")
    await live_node(rig.engine, max_count=2)
    assert await codes(rig, made[4]) == ["next_up"]


# -- targets


async def test_a_job_behind_another_of_its_target_says_how_many_go_first(rig: Rig) -> None:
    await live_node(rig.engine)
    made = await put_target(rig.engine, 0, target="shop")
    await take_all(rig.engine)
    made += await put_target(rig.engine, 0, 5, 0, target="shop")
    await take_all(rig.engine)
    assert await codes(rig, made[0]) == ["running"]
    for job_id, before in ((made[2], 1), (made[1], 2), (made[3], 3)):
        reason = await first(rig, job_id)
        assert reason.code is Code.BEHIND_IN_TARGET
        assert reason.what == {
            "target": "shop",
            "job": made[0],
            "state": "running",
            "before": before,
            "before_exact": True,
        }


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.PAUSED])
async def test_a_halted_target_names_the_job_that_halts_it(rig: Rig, state: JobState) -> None:
    await live_node(rig.engine)
    made = await put_target(rig.engine, 0, 0, target="shop")
    (claim,) = await take_all(rig.engine)
    await settle(rig.engine, ending(claim, state))
    reason = await first(rig, made[1])
    record = await rig.engine.jobs.get(made[0])
    assert record is not None
    assert (reason.code, reason.since) == (Code.TARGET_HALTED, record.finished_at)
    assert reason.what == {"target": "shop", "job": made[0], "state": state.value}
    assert f"`musterd resume {made[0]}`" in (reason.do or "")
    assert await codes(rig, made[1]) == ["target_halted"]
