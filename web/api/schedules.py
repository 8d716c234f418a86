"""`GET /schedules`: the objects of `musterd schedules --json`."""

from __future__ import annotations

from typing import get_args

from starlette.responses import Response

from musterd.config.schedules import Missed, Overlap
from musterd.manager.duties.schedules.objects import schedule_object
from musterd.web.api.operation import Call, Schema
from musterd.web.api.schemas import (
    ANYTHING,
    COUNT,
    ID,
    NUMBER,
    STATE,
    TEXT,
    TIME,
    WHOLE,
    YES_OR_NO,
    list_of,
    maybe,
    whole_object,
)
from musterd.web.server.answers import json_answer

SCHEDULES: Schema = whole_object(
    schedules=list_of(
        whole_object(
            name=TEXT,
            kind=TEXT,
            payload=ANYTHING,
            cron=maybe(TEXT),
            timezone=maybe(TEXT),
            every_seconds=maybe(NUMBER),
            target=maybe(TEXT),
            priority=maybe(WHOLE),
            missed={"enum": list(get_args(Missed))},
            overlap={"enum": list(get_args(Overlap))},
            tenant=TEXT,
            enabled=YES_OR_NO,
            paused_at=maybe(TIME),
            last_slot=TIME,
            last_fired_at=maybe(TIME),
            last_job_id=maybe(ID),
            last_job_state=maybe(STATE),
            fired=COUNT,
            skipped=COUNT,
            missed_slots=COUNT,
            next=list_of(TIME),
            seconds_until_next=maybe(NUMBER),
        )
    )
)


async def show(call: Call) -> Response:
    own = call.door.schedules()
    records = await call.door.engine.schedules.know(sorted(own)) if own else []
    return json_answer({"schedules": [schedule_object(own[one.name], one) for one in records]})
