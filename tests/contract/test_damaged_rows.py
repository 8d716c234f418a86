"""Rows that somebody changed past the checks of the schema: one that no claim can take has failed
with an error that says why, all others are claimed, and everybody can read all of them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from musterd.store.errors import InputRefused
from musterd.store.jobs import JobFilter, NewJob
from musterd.store.leases import ClaimRequest, Settlement
from musterd.store.lifecycle import JobState
from tests.contract.job_tools import ids, look, put, reap_by, state_of, take
from tests.contract.rigs import LEASE_SECONDS, PostgresRig, SqliteRig, opened

ODD_ON_POSTGRES = [
    "run_at = '-infinity'",
    "run_at = 'infinity'",
    "attempt = 2147483647",
    "attempt = 2000000000",
    "attempt = -7, scheduled_for = 'infinity', finished_at = 'infinity'",
    "run_at = '-infinity', created_at = '4000-01-01 BC'",
]
ODD_ON_SQLITE = [
    "attempt = 9223372036854775807",
    "attempt = 'many'",
    "attempt = 2000000000",
    "payload = x'6162'",
    "kind = x'6162'",
    "spent = x'6162'",
    "run_at = -9223372036854775807, attempt = 2000000000",
    "forgiven = 'few', max_attempts = 0, attempt = 2000000000",
    "target = '', attempt = -3000000000, attempt = 2000000001",
    "payload = x'00', scheduled_for = 'soon', schedule = x'61'",
]


def damage(rig: PostgresRig, change: str, job_id: int) -> None:
    """As the owner of the schema may: the place of the job goes with it."""
    triggers = "job_rows_refuse_end", "job_rows_refuse_change"
    for doing in ("disable", "enable"):
        for trigger in triggers:
            rig.raw(f"alter table job_rows {doing} trigger {trigger}")
        if doing == "disable":
            rig.raw(f"update job_rows set {change} where id = {job_id}")


def damage_file(rig: SqliteRig, change: str, job_id: int) -> None:
    with closing(sqlite3.connect(rig.path, isolation_level=None)) as connection:
        connection.execute("pragma ignore_check_constraints = on")
        connection.execute(f"update job_rows set {change} where id = {job_id}")


async def taken(rig: PostgresRig | SqliteRig) -> tuple[list[int], list[Settlement]]:
    """What is claimed, as the exchange loop goes about it, and what was set aside."""
    request = ClaimRequest(uuid4(), "north", tuple(range(1, 10)), 0, LEASE_SECONDS)
    found: list[int] = []
    try:
        for _ in range(2):  # what was left to a claim of another form comes with the next
            found += ids(await take(rig.engine, workers=9))
    except (InputRefused, sqlite3.Error, TypeError):
        aside = await rig.engine.leases.set_aside(request)
        return found + ids(await take(rig.engine, workers=9)), aside
    return found, []


@pytest.fixture
async def file_rig(tmp_path: Path) -> AsyncGenerator[SqliteRig]:
    async with opened(SqliteRig(str(tmp_path / "musterd.db"))) as rig:
        assert isinstance(rig, SqliteRig)
        yield rig


async def all_can_be_read(rig: PostgresRig | SqliteRig, number: int) -> None:
    assert len(await rig.engine.jobs.find(JobFilter())) == number
    for job_id in range(1, number + 1):
        await rig.engine.jobs.why_facts(job_id)
    await rig.engine.queue.next_due_seconds()


async def put_three(rig: PostgresRig | SqliteRig, target: str | None) -> None:
    """Due jobs, of which the second is of the target."""
    for each in (None, target, None):
        await rig.engine.jobs.enqueue([NewJob("report", target=each)])


@pytest.mark.parametrize("change", ODD_ON_POSTGRES)
@pytest.mark.parametrize("target", [None, "t"])
async def test_a_row_that_no_claim_can_take_fails_alone(
    postgres_rig: PostgresRig, change: str, target: str | None
) -> None:
    rig = postgres_rig
    await put_three(rig, target)
    damage(rig, change, 2)
    await all_can_be_read(rig, 3)
    found, aside = await taken(rig)
    if change == "run_at = 'infinity'":  # never due, so in nobody's way
        aside = await rig.engine.leases.set_aside(request := ClaimRequest(uuid4(), "n", (1,), 0, 9))
        assert [one.token for one in aside] == [request.token]
    assert (found, [one.id for one in aside]) == ([1, 3], [2])
    await is_set_aside(rig, 2, change)
    assert rig.faults() == []


@pytest.mark.parametrize("change", ODD_ON_SQLITE)
@pytest.mark.parametrize("target", [None, "t"])
async def test_nor_does_one_in_a_file_stop_the_others(
    file_rig: SqliteRig, change: str, target: str | None
) -> None:
    rig = file_rig
    await put_three(rig, target)
    damage_file(rig, change, 2)
    found, aside = await taken(rig)
    assert (found, [one.id for one in aside]) == ([1, 3], [2])
    await all_can_be_read(rig, 3)
    await is_set_aside(rig, 2, change)


async def is_set_aside(rig: PostgresRig | SqliteRig, job_id: int, change: str) -> None:
    job = await look(rig, job_id)
    assert job.state is JobState.FAILED
    error = json.loads(job.error or "")
    assert error["type"] == "row_damaged"
    assert f"{change.partition(' ')[0]} is " in error["message"]
    assert [one.outcome for one in job.attempts] == ["failed"]
    await rig.engine.events.order()
    page = await rig.engine.events.read(0)
    ends = [one for one in page.events if one.job_id == job_id and one.type == "job.failed"]
    assert len(ends) == 1
    counts = await rig.engine.queue.counts()
    assert counts.by_state[JobState.FAILED] == 1


async def test_a_slot_that_no_client_can_read_costs_no_job_its_attempt(
    postgres_rig: PostgresRig,
) -> None:
    """The claim was committed, its reply could not be read, and the jobs beside it were lost."""
    rig = postgres_rig
    await put(rig.engine, 0, 0, 0)
    damage(rig, "scheduled_for = 'infinity'", 2)
    damage(rig, "scheduled_for = '0044-03-15 BC'", 3)
    assert ids(await take(rig.engine)) == [1]
    (second,) = await take(rig.engine)
    assert (second.id, second.scheduled_for and second.scheduled_for.year) == (2, 9999)
    (third,) = await take(rig.engine, ahead=1)
    assert (third.id, third.scheduled_for and third.scheduled_for.year) == (3, 1)
    assert {await state_of(rig.engine, one) for one in (1, 2, 3)} == {JobState.RUNNING}


async def test_a_job_that_is_made_in_a_year_does_not_put_off_the_others(
    postgres_rig: PostgresRig,
) -> None:
    rig = postgres_rig
    await put(rig.engine, 0, 0)
    (now,) = rig.raw("select extract(epoch from clock_timestamp())::float8")[0]
    damage(rig, "created_at = 'infinity'", 1)
    claims = await take(rig.engine, workers=2)
    assert ids(claims) == [1, 2]
    assert all(claim.claimed_epoch < now + 120 for claim in claims)


async def reaped_beside(rig: PostgresRig | SqliteRig, target: str | None) -> None:
    """Three are in hand, of which the second is damaged, and nobody renews them."""
    reaped = await rig.engine.leases.reap(reap_by("requeue"))
    states = {one.id: one.state for one in reaped}
    assert states == {1: JobState.QUEUED, 2: JobState.FAILED, 3: JobState.QUEUED}
    assert [one.id for one in reaped if one.damage] == [2]
    await all_can_be_read(rig, 3)
    error = json.loads((await look(rig, 2)).error or "")
    assert error["type"] == "row_damaged"
    assert (await rig.engine.queue.counts()).by_state[JobState.FAILED] == 1
    assert await rig.engine.leases.reap(reap_by("requeue")) == []
    if target is not None:  # it halts its target, as every job that has failed
        await rig.engine.jobs.enqueue([NewJob("report", target=target)])
        assert ids(await take(rig.engine, workers=9)) == [1, 3]


IN_HAND_ON_POSTGRES = [
    "attempt = 2147483647",
    "attempt = 2000000000",
    "progress_note = repeat('x', 5000)",
]


@pytest.mark.parametrize("change", IN_HAND_ON_POSTGRES)
@pytest.mark.parametrize("target", [None, "t"])
async def test_one_that_is_damaged_in_hand_keeps_no_other_in_lost_hands(
    postgres_rig: PostgresRig, change: str, target: str | None
) -> None:
    rig = postgres_rig
    await put_three(rig, target)
    assert len(await take(rig.engine, workers=9)) + len(await take(rig.engine, workers=9)) == 3
    damage(rig, f"{change}, progress_of = 1", 2)
    rig.pass_time(LEASE_SECONDS + 1)
    await reaped_beside(rig, target)
    assert rig.faults() == []


IN_HAND_IN_A_FILE = [
    "attempt = 'many'",
    "attempt = 9223372036854775807",
    "forgiven = 'few', max_attempts = null",
    "kind = x'6162'",
    "claim_token = x'6162'",
    "request = 'dance'",
    "started_at = 'soon'",
]


@pytest.mark.parametrize("change", IN_HAND_IN_A_FILE)
@pytest.mark.parametrize("target", [None, "t"])
async def test_nor_does_one_in_a_file_that_is_damaged_in_hand(
    file_rig: SqliteRig, change: str, target: str | None
) -> None:
    rig = file_rig
    await put_three(rig, target)
    assert len(await take(rig.engine, workers=9)) == 3
    damage_file(rig, change, 2)
    rig.pass_time(LEASE_SECONDS + 1)
    await reaped_beside(rig, target)
