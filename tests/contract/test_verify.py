"""What `musterd verify` reads of a store, and what it finds: nothing where nothing is wrong, and
each thing that is done behind the engine's back.
"""

from __future__ import annotations

from random import Random

import pytest
import trio

from musterd.console.verify.judge import Judge
from musterd.console.verify.rules import Rule
from musterd.console.verify.verb import Comparison
from musterd.store.engine import Engine
from musterd.store.events import ROWS_AT_ONCE
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from tests.contract.job_tools import ending, put, settle, take, take_one
from tests.contract.rigs import PostgresRig, Rig

OUTCOMES = (
    (JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED),
    (JobState.FAILED, AttemptOutcome.FAILED),
    (JobState.QUEUED, AttemptOutcome.RETRYING),
    (JobState.QUEUED, AttemptOutcome.RELEASED),
    (JobState.PAUSED, AttemptOutcome.PAUSED),
    (JobState.CANCELED, AttemptOutcome.CANCELED),
)


async def verified(engine: Engine, since: int = 0) -> Judge:
    judge = Judge()
    judge.start_behind(since)
    comparison = Comparison(engine, judge)
    await comparison.follow()
    await comparison.compare()
    return judge


async def live(engine: Engine, rng: Random, steps: int) -> None:
    """Some of everything that may happen to a job."""
    for _ in range(steps):
        targets = rng.choice([None, "a", "b"])
        hold = rng.random() < 0.2
        await engine.jobs.enqueue([NewJob("report", target=targets, hold=hold) for _ in range(2)])
        for claim in await take(engine, workers=rng.randint(0, 2), ahead=rng.randint(0, 2)):
            state, outcome = rng.choice(OUTCOMES)
            delay = 0.0 if state is JobState.QUEUED else None
            if rng.random() < 0.8:
                await settle(engine, ending(claim, state, outcome, delay_seconds=delay))
        for _ in range(3):
            await engine.control.apply(rng.choice(list(Action)), rng.randint(1, 2 * steps))


def told(judge: Judge) -> list[tuple[Rule, int | None]]:
    return [(one.rule, one.job_id) for one in judge.findings.violations]


@pytest.mark.parametrize("seed", range(3))
async def test_what_the_engine_does_is_lawful(rig: Rig, seed: int) -> None:
    await live(rig.engine, Random(seed), 40)
    judge = await verified(rig.engine)
    assert told(judge) == []
    looked = {rule for rule in Rule if judge.findings.finding(rule) == "ok"}
    assert looked >= {Rule.ONE_HAND, Rule.TARGET, Rule.EDGES, Rule.ENDS, Rule.TABLE, Rule.COUNTS}
    assert judge.findings.cases[Rule.TABLE] == 80


async def test_it_is_lawful_wherever_the_log_begins(rig: Rig) -> None:
    await live(rig.engine, Random(7), 25)
    newest = (await rig.engine.events.bounds()).newest
    for since in range(0, newest + 1, 7):
        assert told(await verified(rig.engine, since)) == []


async def test_an_empty_store_has_nothing_to_check(rig: Rig) -> None:
    judge = await verified(rig.engine)
    assert judge.findings.holds
    assert judge.looked_at == 0


async def test_a_row_that_was_changed_by_hand_is_told(rig: Rig) -> None:
    first, second, third = await put(rig.engine, 0, 0, 0)
    rig.raw(f"update job_rows set state = 'paused' where id = {first}")
    rig.raw(f"update job_rows set attempt = 4 where id = {second}")
    judge = await verified(rig.engine)
    assert (Rule.TABLE, first) in told(judge)
    assert (Rule.TABLE, second) in told(judge)
    assert (Rule.TABLE, third) not in told(judge)


async def test_a_job_that_stands_nowhere_or_twice_is_told(postgres_rig: PostgresRig) -> None:
    rig = postgres_rig
    lost, twice, _ = await put(rig.engine, 0, 1, 2)
    assert told(await verified(rig.engine)) == []
    rig.raw(
        f"delete from ready where first_id = {lost};"
        "insert into waiting select 'parked', kind, * from ready where first_id = " + str(twice)
    )
    rig.tampered = True
    judge = await verified(rig.engine)
    assert [one for one in told(judge) if one[0] is Rule.PLACES] == [
        (Rule.PLACES, lost),
        (Rule.PLACES, twice),
    ]
    assert judge.findings.violations[0].story == f"job {lost} is queued and stands nowhere"


async def test_a_row_that_was_deleted_by_hand_is_told(rig: Rig) -> None:
    first, _ = await put(rig.engine, 0, 0)
    rig.raw(f"delete from job_rows where id = {first}")
    assert (Rule.TABLE, first) in told(await verified(rig.engine))


async def test_counts_that_are_wrong_are_told(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    if rig.engine.name == "sqlite":
        rig.raw("update job_counts set number = number + 3 where name = 'queued'")
    else:
        rig.raw("update job_counts set queued = queued + 3")
    judge = await verified(rig.engine)
    assert told(judge) == [(Rule.COUNTS, None)]
    assert judge.findings.violations[0].story == "5 jobs are counted as queued, the table has 2"


async def test_events_that_were_deleted_by_hand_are_told(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim))
    await put(rig.engine, 0)
    await rig.engine.events.order()
    rig.raw("delete from event_log where type = 'job.started'")
    judge = await verified(rig.engine)
    assert told(judge) == [(Rule.LOG, None)]
    assert judge.findings.violations[0].positions == (1, 3)


async def test_events_that_are_forgotten_in_time_are_not_missed(rig: Rig) -> None:
    await live(rig.engine, Random(3), 10)
    await rig.engine.events.order()
    rig.pass_time(100)
    await put(rig.engine, 0)
    await rig.engine.events.order()
    assert await rig.engine.events.trim(50, 1_000)
    judge = await verified(rig.engine)
    assert told(judge) == []
    assert judge.first > 1


async def test_a_table_of_several_pages(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("report")] * (ROWS_AT_ONCE + 2))
    judge = await verified(rig.engine)
    assert told(judge) == []
    assert judge.findings.cases[Rule.TABLE] == ROWS_AT_ONCE + 2
    rig.raw(f"delete from job_rows where id = {ROWS_AT_ONCE + 1}")
    assert (Rule.TABLE, ROWS_AT_ONCE + 1) in told(await verified(rig.engine))


async def test_nobody_is_accused_while_others_work(shared: Rig) -> None:
    """Neither for what changes between two looks, nor for what waits to be put in order."""
    busy = True

    async def work(seed: int) -> None:
        rng = Random(seed)
        while busy:
            await live(shared.engine, rng, 1)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, 1)
        nursery.start_soon(work, 2)
        for _ in range(12):
            assert told(await verified(shared.engine)) == []
        busy = False


async def test_what_waits_to_be_put_in_order_counts(rig: Rig) -> None:
    """The counts are those of a moment at which the log may not yet say all."""
    (first, second) = await put(rig.engine, 0, 0)
    await rig.engine.control.apply(Action.CANCEL, first)
    judge = Judge()
    comparison = Comparison(rig.engine, judge)
    await comparison.follow()
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim))
    await rig.engine.jobs.enqueue([NewJob("report", hold=True)])
    tally = await rig.engine.audit.tally()
    assert claim.id == second
    assert tally.counted == {JobState.CANCELED: 1, JobState.SUCCEEDED: 1, JobState.PENDING: 1}
    assert tally.enqueued == 3
    assert (len(tally.drafts) == 3) is (rig.engine.name == "postgresql")
    await comparison.compare()
    assert told(judge) == []
