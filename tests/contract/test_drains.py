"""Claims of many, one after the other: each begins where the one before began, and still nothing
that is more urgent waits, and nothing is passed over for long.
"""

import trio

from musterd.store.job import AttemptOutcome, JobState, NewJob
from tests.contract.rigs import Rig, ending, ids, put, settle, take

MANY = 100  # from so many on
MOMENT_SECONDS = 0.3  # after which a claim begins with the first job again


async def test_a_drain_takes_all_in_order(rig: Rig) -> None:
    made = await rig.engine.enqueue([NewJob("a")] * (3 * MANY + 7))
    taken: list[int] = []
    while claims := await take(rig.engine, workers=MANY):
        taken += ids(claims)
    assert taken == made


async def test_what_is_more_urgent_comes_next(rig: Rig) -> None:
    await rig.engine.enqueue([NewJob("a")] * (3 * MANY))
    await take(rig.engine, workers=MANY)
    await take(rig.engine, workers=MANY)
    (urgent,) = await put(rig.engine, 1)
    claims = await take(rig.engine, workers=MANY)
    assert (claims[0].id, len(claims)) == (urgent, MANY)


async def test_what_is_less_urgent_comes_last(rig: Rig) -> None:
    (less,) = await put(rig.engine, -1)
    await rig.engine.enqueue([NewJob("a")] * (2 * MANY))
    await take(rig.engine, workers=MANY)
    claims = await take(rig.engine, workers=2 * MANY)
    assert (claims[-1].id, len(claims)) == (less, MANY + 1)


async def test_a_job_that_is_given_back_is_first_again_a_moment_later(rig: Rig) -> None:
    await rig.engine.enqueue([NewJob("a")] * (5 * MANY))
    first = await take(rig.engine, workers=MANY)
    await take(rig.engine, workers=MANY)
    await settle(rig.engine, ending(first[0], JobState.QUEUED, AttemptOutcome.RELEASED))
    await trio.sleep(MOMENT_SECONDS)
    claims = await take(rig.engine, workers=MANY)
    assert claims[0].id == first[0].id


async def test_nothing_is_passed_over_since_a_job_was_put_off(rig: Rig) -> None:
    """The one with which the claim before began."""
    await rig.engine.enqueue([NewJob("a")] * (3 * MANY))
    first = await take(rig.engine, workers=MANY)
    second = await take(rig.engine, workers=MANY)
    put_off = ending(second[0], JobState.QUEUED, AttemptOutcome.SNOOZED, delay_seconds=60.0)
    await settle(rig.engine, put_off)
    claims = await take(rig.engine, workers=2 * MANY)
    assert len(claims) == MANY
    assert claims[0].id > second[-1].id > first[-1].id
