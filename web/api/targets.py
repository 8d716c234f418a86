"""Targets: whose jobs run one at a time, and what halts them."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import Response

from musterd.store.job import Action, JobState
from musterd.web.api.jobs import act, found
from musterd.web.api.operation import Call
from musterd.web.plan import TargetSeen
from musterd.web.server import asked
from musterd.web.server.answers import json_answer
from musterd.web.server.problem import Refused

HALTING = frozenset({JobState.PAUSED, JobState.FAILED})


async def show(call: Call) -> Response:
    name = _name(call)
    return json_answer(target_object(name, await call.door.target(name)))


async def resume(call: Call) -> Response:
    """Resumes the job of the path, if it is one of the target's."""
    name = _name(call)
    record = await found(call)
    if call.door.target_of(record) != name:
        said = f"job {record.id} is none of the target {name!r}"
        raise Refused(HTTPStatus.NOT_FOUND, said)
    return await act(call, Action.RESUME, record.id)


def target_object(name: str, seen: TargetSeen) -> dict[str, object]:
    return {
        "target": name,
        "halted": seen.job_state in HALTING,
        "job_id": seen.job_id,
        "job_state": seen.job_state,
        "reserved": seen.reserved,
        "waiting": seen.waiting,
        "next_ids": list(seen.next_ids),
    }


def _name(call: Call) -> str:
    try:
        return asked.place(call.place("target"))
    except ValueError as error:
        raise Refused(HTTPStatus.NOT_FOUND, f"target: {error}") from None
