"""What the machine has found once, step by step, and what is easily got wrong: tried each time."""

from typing import Any

import pytest
import trio

from musterd.store.lifecycle import Action, JobState
from tests.contract.rigs import LEASE_SECONDS
from tests.fix_postgres import FreshDatabase
from tests.stateful.machine import Machine
from tests.stateful.model_job import Verdict
from tests.stateful.model_line import Wanted
from tests.stateful.stores import opened_postgres, opened_sqlite

Q = JobState.QUEUED
Step = tuple[str, dict[str, Any]]


def wanted(**more: Any) -> Wanted:
    plain = Wanted("plain", None, 0, None, False, None, "until_finished", None)
    return plain._replace(**more)


def begin(*jobs: Wanted, caps: dict[str, int] | None = None, most: int | None = None) -> Step:
    return "begin", {"caps": caps or {}, "most": most, "jobs": list(jobs)}


def settle(*ends: Verdict, workers: int = 0) -> Step:
    return "settle", {"ends": list(enumerate(ends)), "workers": workers, "forged": False}


CLAIM: Step = ("claim", {"workers": 1, "ahead": 0})
CLAIM_ALL: Step = ("claim", {"workers": 9, "ahead": 0})
CANCEL: Step = ("ask_holder", {"action": Action.CANCEL, "place": 0})
PAUSE: Step = ("ask_holder", {"action": Action.PAUSE, "place": 0})
REAP: Step = ("reap", {"on_lost": "requeue", "budget": 9})
LATER: Step = ("pass_time", {"seconds": 100.0})
RETRY = Verdict(Q, "retrying")

KEPT: dict[str, list[Step]] = {
    "a lost lease says when it ran out": [begin(wanted()), CLAIM, LATER, REAP],
    "a lease has run out in its last moment": [
        begin(wanted()), CLAIM, ("pass_time", {"seconds": LEASE_SECONDS}), REAP,
    ],
    "a retry that is turned has no due time": [
        begin(wanted()), CLAIM, CANCEL, settle(Verdict(Q, "retrying", delay_seconds=20.0)),
    ],
    "a turned attempt without an error takes none from the one before": [
        begin(wanted()), CLAIM, settle(RETRY), CLAIM, PAUSE,
        settle(Verdict(Q, "snoozed", forgive=True, delay_seconds=20.0)),
    ],
    "a lease that has run out is not renewed": [
        begin(wanted()), CLAIM, LATER,
        ("renew", {"place": 0, "has_started": True, "forged": False}),
    ],
    "a snooze outlasts a pause": [
        begin(wanted()), CLAIM, settle(Verdict(Q, "snoozed", forgive=True, delay_seconds=20.0)),
        ("control_many", {"action": Action.PAUSE, "kinds": ()}),
        ("control_many", {"action": Action.RESUME, "kinds": ()}),
    ],
    "a phase that nobody has begun": [
        begin(wanted()), CLAIM, settle(Verdict(Q, "retrying", finishes="one")),
    ],
    "a phase that ends a job which nobody has told to have started": [
        begin(wanted()), ("claim", {"workers": 0, "ahead": 1}),
        settle(Verdict(JobState.SUCCEEDED, "succeeded", finishes="four")),
    ],
    "a cap and a target in the way of each other": [
        begin(*[wanted(kind="narrow", target=one) for one in "tut"], wanted(target="t"),
              caps={"narrow": 1}, most=3),
        CLAIM_ALL, settle(RETRY), CLAIM_ALL, ("change_caps", {"caps": {}}), CLAIM_ALL,
    ],
    "many of a target are canceled, the one that has it first": [
        begin(*[wanted(target="t")] * 3), CLAIM_ALL, settle(RETRY),
        ("control_many", {"action": Action.CANCEL, "kinds": ()}),
    ],
    "a settlement that is sent twice": [
        begin(wanted(), wanted(target="t")), CLAIM_ALL, settle(RETRY, RETRY, workers=2),
        ("settle_again", {"place": 0}), ("settle_again", {"place": 1}),
    ],
    "a key that outlives its job": [
        begin(wanted(key="k", scope="forever")), CLAIM,
        settle(Verdict(JobState.SUCCEEDED, "succeeded")), LATER,
        ("retain", {"what": "mark", "age": 50.0, "batch": 2}),
        ("retain", {"what": "delete", "age": 50.0, "batch": 2}),
        ("enqueue", {"jobs": [wanted(key="k")]}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
async def test_a_kept_example(fresh_database: FreshDatabase, name: str) -> None:
    async with opened_sqlite() as sqlite, opened_postgres(fresh_database()) as postgres:

        def walk() -> None:
            machine = Machine([sqlite, postgres])
            for step, values in KEPT[name]:
                getattr(machine, step)(**values)
                machine.stands_as_the_model_says()
            machine.teardown()

        await trio.to_thread.run_sync(walk)
