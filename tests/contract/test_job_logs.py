"""The log of a job: noted under its lease while it runs, read by anyone, left by the lost."""

from uuid import uuid4

import pytest

from musterd.store.engine import Engine
from musterd.store.job_log import LogPage, LogPosition, plain
from musterd.store.jobs import JobRecord
from musterd.store.leases import Claim, LogNote
from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.contract.job_tools import ending, put, reap_by, settle, take_one
from tests.contract.rigs import Rig

START = LogPosition()


def line(number: int) -> str:
    return f"2030-01-01T09:00:00.{number:03d}Z stdout info line {number}\n"


def text(first: int, last: int) -> str:
    return "".join(line(number) for number in range(first, last + 1))


def note(claim: Claim, first: int, last: int, floor: int = 0) -> LogNote:
    return LogNote(claim.id, claim.token, first, last, floor, text(first, last))


async def page(engine: Engine, job_id: int, after: LogPosition = START) -> LogPage:
    found = await engine.jobs.log(job_id, after)
    assert found is not None
    return found


async def numbers(rig: Rig, claim: Claim, after: LogPosition = START) -> list[int]:
    return [one.number for one in (await page(rig.engine, claim.id, after)).lines]


async def a_claim(rig: Rig) -> Claim:
    await put(rig.engine, 0)
    return await take_one(rig.engine)


async def record(rig: Rig, job_id: int) -> JobRecord:
    found = await rig.engine.jobs.get(job_id)
    assert found is not None
    return found


def kept(rig: Rig) -> int:
    ((count,),) = rig.raw("select count(*) from live_logs")
    return int(count)


async def test_what_runs_is_read_as_it_comes(rig: Rig) -> None:
    claim = await a_claim(rig)
    assert (await page(rig.engine, claim.id)).lines == ()
    assert await rig.engine.leases.note_logs([note(claim, 1, 2)]) == {claim.id}
    first = await page(rig.engine, claim.id)
    assert [(one.attempt, one.number, one.text) for one in first.lines] == [
        (1, 1, "line 1"),
        (1, 2, "line 2"),
    ]
    assert (first.position, first.is_whole) == (LogPosition(1, 2), False)
    await rig.engine.leases.note_logs([note(claim, 1, 4)])  # the part has grown
    await rig.engine.leases.note_logs([note(claim, 5, 6)])
    assert await numbers(rig, claim, first.position) == [3, 4, 5, 6]
    assert await numbers(rig, claim, LogPosition(1, 6)) == []
    running = await record(rig, claim.id)
    assert running.log == running.attempts[0].log == text(1, 6)


async def test_parts_that_are_too_old_go_and_are_told_as_missing(rig: Rig) -> None:
    claim = await a_claim(rig)
    for first in (1, 11, 21):
        await rig.engine.leases.note_logs([note(claim, first, first + 9, floor=first - 1)])
    found = await page(rig.engine, claim.id)
    assert [one.number for one in found.lines] == [20, *range(21, 31)]
    assert found.lines[0].text == "20 older lines were not kept"
    assert kept(rig) == 1
    assert await numbers(rig, claim, LogPosition(1, 15)) == [20, *range(21, 31)]


async def test_only_the_holder_writes(rig: Rig) -> None:
    claim = await a_claim(rig)
    stranger = claim._replace(token=uuid4())
    absent = claim._replace(id=claim.id + 1)
    wanted = [note(stranger, 1, 1), note(absent, 1, 1)]
    assert await rig.engine.leases.note_logs(wanted) == frozenset()
    await settle(rig.engine, ending(claim))
    assert await rig.engine.leases.note_logs([note(claim, 1, 1)]) == frozenset()
    assert kept(rig) == 0


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.QUEUED, JobState.PAUSED])
async def test_the_end_brings_the_whole_log_in_its_place(rig: Rig, state: JobState) -> None:
    claim = await a_claim(rig)
    await rig.engine.leases.note_logs([note(claim, 1, 2)])
    outcome = AttemptOutcome.RETRYING if state is JobState.QUEUED else None
    await settle(rig.engine, ending(claim, state, outcome, log=text(1, 3), log_begun=True))
    assert kept(rig) == 0
    rest = await page(rig.engine, claim.id, LogPosition(1, 2))
    assert [one.number for one in rest.lines] == [3]
    assert rest.position == LogPosition(2, 0)
    assert rest.is_whole == (state is not JobState.QUEUED)
    assert (await page(rig.engine, claim.id, rest.position)).lines == ()


@pytest.mark.parametrize("rule", ["requeue", "fail"])
async def test_a_lost_attempt_leaves_what_it_had_said(rig: Rig, rule: str) -> None:
    claim = await a_claim(rig)
    await rig.engine.leases.note_logs([note(claim, 1, 2)])
    await rig.engine.leases.note_logs([note(claim, 3, 4)])
    rig.pass_time(500)
    (reaped,) = await rig.engine.leases.reap(reap_by(rule))
    assert reaped.id == claim.id
    assert kept(rig) == 0
    assert (await record(rig, claim.id)).attempts[0].log == text(1, 4)
    assert await rig.engine.leases.note_logs([note(claim, 5, 5)]) == frozenset()


async def test_a_reader_goes_on_from_attempt_to_attempt(rig: Rig) -> None:
    claim = await a_claim(rig)
    retry = ending(claim, JobState.QUEUED, AttemptOutcome.RETRYING, log=text(1, 3))
    await settle(rig.engine, retry)
    again = await take_one(rig.engine)
    assert again.attempt == 2
    await rig.engine.leases.note_logs([note(again, 1, 1)])
    both = await page(rig.engine, claim.id, LogPosition(1, 2))
    assert [(one.attempt, one.number) for one in both.lines] == [(1, 3), (2, 1)]
    assert both.position == LogPosition(2, 1)
    assert plain((await record(rig, claim.id)).attempts[1].log) == "line 1\n"


async def test_many_attempts_come_page_by_page(rig: Rig) -> None:
    claim = await a_claim(rig)
    for attempt in range(1, 8):
        log = text(attempt, attempt)
        await settle(rig.engine, ending(claim, JobState.QUEUED, AttemptOutcome.RETRYING, log=log))
        claim = await take_one(rig.engine)
    found, position, pages = list[int](), START, 0
    while True:
        one = await page(rig.engine, claim.id, position)
        found += [each.attempt for each in one.lines]
        position, pages = one.position, pages + 1
        if not one.more:
            break
    assert found == [1, 2, 3, 4, 5, 6, 7]
    assert pages == 2


async def test_there_is_no_log_of_no_job(rig: Rig) -> None:
    assert await rig.engine.jobs.log(12, START) is None
    assert await rig.engine.jobs.log(10**30, START) is None
