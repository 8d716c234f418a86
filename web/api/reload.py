"""The route that makes the node read its configuration and catalog anew."""

from __future__ import annotations

from http import HTTPStatus

import trio
from starlette.responses import Response

from musterd.manager.reload.outcome import NotNow, Outcome, Taken, taken_object
from musterd.manager.reload.outcome import Refused as ReloadRefused
from musterd.web.api.operation import Call, Operation, Param, Reply
from musterd.web.api.reload_schema import RELOADED, STARTED
from musterd.web.server.answers import json_answer, written
from musterd.web.server.problem import Refused, problem

ANSWER_SECONDS = 60.0  # modules are imported, to see whether their kinds can run
MARGIN_SECONDS = 5.0  # the handler says by itself that it takes longer
WORDS = {"true": True, "false": False}
FAULT_CHARACTERS = 500


def yes_or_no(text: str) -> bool:
    """Raises ValueError."""
    if text not in WORDS:
        raise ValueError(f"found {text!r}, wanted true or false")
    return WORDS[text]


async def reload(call: Call) -> Response:
    """The reload goes on whether or not anybody waits for it."""
    plan, wanted = call.site.plan, call.query.get("wait", True)
    if not wanted:
        if why := plan.reload.why_not():
            raise Refused(HTTPStatus.CONFLICT, why)
        plan.reload.soon()
        await trio.lowlevel.checkpoint()
        return _started(call)
    with trio.move_on_after(ANSWER_SECONDS - MARGIN_SECONDS):
        return await _answer(call, await plan.reload.ask())
    return _started(call)


def _started(call: Call) -> Response:
    name = call.site.plan.node.status().node
    return json_answer({"node": name, "result": "started"}, HTTPStatus.ACCEPTED)


async def _answer(call: Call, outcome: Outcome) -> Response:
    match outcome:
        case NotNow():
            raise Refused(HTTPStatus.CONFLICT, outcome.why)
        case ReloadRefused():
            return await written(
                call.site, FAULT_CHARACTERS * len(outcome.faults), lambda: _refusal(outcome)
            )
        case Taken():
            return await _taken(call, outcome)


def _refusal(outcome: ReloadRefused) -> Response:
    count = len(outcome.faults)
    found = "a fault" if count == 1 else f"{count} faults"
    said = f"the new configuration has {found}; the old one, generation {outcome.generation}, stays"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, said, faults=outcome.faults)


async def _taken(call: Call, taken: Taken) -> Response:
    name = call.site.plan.node.status().node
    named = (taken.changes.schedules, taken.kinds)
    names = sum(len(one.names) + sum(len(each.keys) for each in one.changed) for one in named)
    size = FAULT_CHARACTERS * (names + len(taken.changes.keys))
    return await written(call.site, size, lambda: json_answer(taken_object(name, taken)))


WAIT = Param(
    "wait", "`false`: do not wait for what comes of it.", {"type": "boolean", "default": True},
    yes_or_no,
)  # fmt: skip


def operation(tenant: Param) -> Operation:
    return Operation(
        "POST", "/reload", "reload", "Let the node read configuration and catalog anew.", "admin",
        reload,
        {
            200: Reply("It is taken over: what is different.", RELOADED),
            202: Reply("It is under way; the node's log tells the end.", STARTED),
        },
        (WAIT, tenant),
        refusals={
            HTTPStatus.CONFLICT: "The node starts or drains, or many reloads wait; try again.",
            HTTPStatus.UNPROCESSABLE_ENTITY: "It has `faults`, and nothing was changed.",
        },
        answer_seconds=ANSWER_SECONDS,
    )  # fmt: skip
