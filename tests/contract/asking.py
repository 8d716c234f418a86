"""Asking a store under test why a job does not run."""

from typing import Any

from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.reasons import Reason
from musterd.store.why import Why, why
from tests.contract.rigs import Rig


async def ask(rig: Rig, job_id: int) -> Why:
    seen = await rig.engine.jobs.why_facts(job_id)
    assert seen is not None
    return why(seen)


async def codes(rig: Rig, job_id: int) -> list[str]:
    return [one.code.value for one in (await ask(rig, job_id)).reasons]


async def first(rig: Rig, job_id: int) -> Reason:
    return (await ask(rig, job_id)).reasons[0]


async def put_one(engine: Engine, kind: str = "report", **options: Any) -> int:
    (job_id,) = await engine.jobs.enqueue([NewJob(kind, **options)])
    return job_id
