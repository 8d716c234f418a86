"""Handlers of users under the real daemon: limits, retries, what waits and why."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from musterd.catalog.kinds import Python, WorkKind
from musterd.store.job_log import plain
from musterd.store.lifecycle import JobState
from tests.support.stage import Stage, kind, until

HANDLERS = """
import trio
from musterd import Retry, Snooze
async def double(job): return job.payload * 2
async def sleepy(job):
    job.log("asleep")
    await trio.sleep(1000)
async def again(job):
    if job.attempt == 1: raise Retry(in_seconds=3, message="busy")
    return job.attempt
async def later(job):
    if job.attempt == 1: raise Snooze(in_seconds=4)
    return job.attempt
async def spend(job):
    job.spend(tokens=6)
    raise Retry(in_seconds=1)
async def hang(job):
    job.spend(tokens=6)
    await trio.sleep(1000)
"""


@pytest.fixture
def users(tmp_path: Path, stage: Stage) -> Stage:
    (tmp_path / "staged_handlers.py").write_text(HANDLERS)
    for name in ("double", "sleepy", "again", "later", "spend", "hang"):
        stage.kinds[name] = _task(name, tmp_path)
    return stage


def _task(name: str, folder: Path, **values: Any) -> WorkKind:
    behaviour = Python("staged_handlers", name, "task", (folder,))
    return evolve(kind(name, **values), behaviour=behaviour)


async def test_a_handlers_result_is_its_jobs(users: Stage) -> None:
    await users.start()
    job_id = await users.put_one("double", payload="21")
    await users.all_ended()
    job = await users.job(job_id)
    assert (job.state, job.result) == (JobState.SUCCEEDED, "42")


async def test_a_time_limit_ends_a_handler(users: Stage) -> None:
    users.kinds["sleepy"] = evolve(users.kinds["sleepy"], time_limit_seconds=3.0)
    await users.start()
    job_id = await users.put_one("sleepy")
    await users.all_ended()
    job = await users.job(job_id)
    assert json.loads(job.error or "")["type"] == "time_limit"
    assert plain(job.log) == "asleep\n"


async def test_a_handler_may_ask_for_another_try(users: Stage) -> None:
    await users.start()
    job_id = await users.put_one("again")
    await users.all_ended()
    first, second = (await users.job(job_id)).attempts
    assert first.finished_at is not None
    assert second.started_at is not None
    assert 3 <= (second.started_at - first.finished_at).total_seconds() <= 3.002


async def test_a_snooze_burns_no_attempt(users: Stage) -> None:
    await users.start()
    job_id = await users.put_one("later", max_attempts=1)
    await users.all_ended()
    job = await users.job(job_id)
    assert (job.state, job.result, job.max_attempts) == (JobState.SUCCEEDED, "2", 2)
    assert [one.outcome for one in job.attempts] == ["snoozed", "succeeded"]


async def test_a_budget_is_for_all_attempts_together(users: Stage) -> None:
    users.kinds["spend"] = evolve(users.kinds["spend"], budgets={"tokens": 10})
    await users.start()
    job_id = await users.put_one("spend")
    await users.all_ended()
    job = await users.job(job_id)
    assert [one.outcome for one in job.attempts] == ["retrying", "failed"]
    assert json.loads(job.error or "")["type"] == "budget_exceeded"
    assert json.loads(job.spent or "") == {"tokens": 12}


async def test_what_a_killed_attempt_has_spent_counts_in_the_next(users: Stage) -> None:
    users.kinds["hang"] = evolve(users.kinds["hang"], budgets={"tokens": 10})
    north = await users.start("north", workers__lease_timeout_seconds=5)
    job_id = await users.put_one("hang")
    await until(users.running_now)
    await trio.sleep(0.01)
    assert json.loads((await users.job(job_id)).spent or "") == {"tokens": 6}
    north.kill()
    await users.start("south", workers__lease_timeout_seconds=5)
    await users.all_ended()
    job = await users.job(job_id)
    assert [one.outcome for one in job.attempts] == ["lost", "failed"]
    assert json.loads(job.error or "")["message"] == "spent 12 of tokens, the budget is 10"


async def test_a_job_of_a_broken_kind_waits_and_says_why(users: Stage) -> None:
    users.kinds["double"] = evolve(users.kinds["double"], broken="no module named 'shop'")
    await users.start()
    job_id = await users.put_one("double", max_attempts=1)
    other_id = await users.put_one("noop")

    def is_given_back() -> bool:
        rows = users.raw(f"select state, reason from job_rows where id = {job_id}")
        return rows[0][0] == "queued" and rows[0][1] is not None

    await until(is_given_back)
    job = await users.job(job_id)
    assert job.reason == (
        "kind 'double' is broken on the node that claimed it: no module named 'shop'"
    )
    assert (job.attempt, job.forgiven) == (1, 1)
    assert await users.state(other_id) is JobState.SUCCEEDED
