"""The OpenAPI 3.1 document, made from the table of routes, and the schemas in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from http import HTTPStatus
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from musterd.config.job_options import KIND_LENGTH_MAX, OPTIONS, JobOption
from musterd.config.schedules import Schedule
from musterd.config.validators import When
from musterd.manager.node.status import Decision, NodePhase, NodeStatus, WorkerView
from musterd.store.compared_hours import ComparedHour
from musterd.store.duties import DutyRecord
from musterd.store.job_log import LEVELS, STREAMS
from musterd.store.jobs import AttemptRecord, JobRecord, NewJob
from musterd.store.lifecycle import JobState
from musterd.store.nodes import KnownKind, NodeRecord
from musterd.store.phases import PhaseRecord
from musterd.store.queue import Counts
from musterd.store.reasons import Code
from musterd.store.report import PLAIN_OPTIONS
from musterd.store.schedules import ScheduleRecord
from musterd.web.api.operation import JSON_TYPE, Operation, Param, Reply, Schema
from musterd.web.picture import LOOK_FIELDS, QUANTILES
from musterd.web.server.answers import PROBLEM_TYPE
from musterd.web.server.requests import ID_MAX, NAME_LENGTH_MAX
from musterd.workers.claiming.held import Ignored

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
YES_OR_NO: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ID: Schema = {"type": "integer", "minimum": 1, "maximum": ID_MAX}
NAME: Schema = {
    "type": "string", "minLength": 1, "maxLength": NAME_LENGTH_MAX, "pattern": "^[^\\u0000]+$",
}  # fmt: skip
ANYTHING: Schema = {}  # any JSON value
PERCENT: Schema = {"type": "integer", "minimum": 0, "maximum": 100}


def values_of(kind: type[Enum]) -> Schema:
    return {"type": "string", "enum": [one.value for one in kind]}


STATE = values_of(JobState)


def enum_of(values: Sequence[str]) -> Schema:
    return {"type": "string", "enum": [*values]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    if not schema:
        return schema  # any value, null too
    if "type" in schema and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def whole_object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def shape_of(*kinds: type, but: str = "", **own: Schema) -> Schema:
    """The object that values of these classes become, without the fields in `but`. `own` adds
    fields and replaces those whose type says too little.
    """
    left_out = {*but.split(), *own}
    hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
    derived = {name: _of_type(hint) for name, hint in hints.items() if name not in left_out}
    return whole_object(**derived, **own)


_PLAIN: Mapping[object, Schema] = {
    bool: YES_OR_NO, int: COUNT, float: NUMBER, str: TEXT, datetime: TIME,
}  # fmt: skip


def _of_type(hint: Any) -> Schema:
    inner = get_args(hint)
    if get_origin(hint) is Literal:
        return {"enum": list(inner)}
    if get_origin(hint) is UnionType:
        (present,) = (one for one in inner if one is not NoneType)
        return maybe(_of_type(present))
    if get_origin(hint) in (tuple, Sequence):
        return list_of(_of_type(inner[0]))
    if hint in _PLAIN:
        return _PLAIN[hint]
    return values_of(hint) if issubclass(hint, Enum) else shape_of(hint)


def _shown(option: JobOption) -> Schema:
    schema = option.type.schema
    return maybe(schema) if NewJob._field_defaults[option.name] is None else schema


def _given(option: JobOption) -> Schema:
    rules = (("Excludes", option.excludes), ("Needs", option.needs))
    notes = [option.help, *(f"{word} {other}." for word, other in rules if other)]
    return {**maybe(option.type.schema), "description": " ".join(notes)}


# What a job is made of; null = not given.
WANTED: Mapping[str, Schema] = {
    "kind": {
        "type": "string", "minLength": 1, "maxLength": KIND_LENGTH_MAX,
        "description": "A kind of the catalog; `musterd kinds` lists them.",
    },
    **{option.name: _given(option) for option in OPTIONS},
    "tenant": {
        "type": ["string", "null"], "minLength": 1, "maxLength": NAME_LENGTH_MAX,
        "description": "The tenant; the same as ?tenant=.",
    },
}  # fmt: skip

ERROR = whole_object(type=ANYTHING, message=ANYTHING)
PROGRESS = whole_object(
    overall=PERCENT, phase=maybe(TEXT), note=maybe(TEXT), until=maybe(TIME),
    phases=list_of(shape_of(PhaseRecord, progress=PERCENT, result=ANYTHING)),
)  # fmt: skip
JOB = shape_of(
    JobRecord, but="forgiven log node phases progress_note request requested_at worker",
    id=ID, tenant=TEXT, payload=ANYTHING, result=ANYTHING, error=maybe(ERROR), progress=PROGRESS,
    spent={"type": "object"}, lease_owner=maybe(TEXT), cancel_requested=YES_OR_NO,
    pause_requested=YES_OR_NO,
    attempts=list_of(shape_of(AttemptRecord, error=maybe(ERROR))),
    **{option.name: _shown(option) for option in PLAIN_OPTIONS},
)  # fmt: skip
REASON = {
    **whole_object(
        code=values_of(Code), text=TEXT, who=TEXT, what={"type": "object"}, since=TIME, until=TIME,
        do=TEXT,
    ),
    "required": ["code", "text"],
}  # fmt: skip
START = whole_object(earliest=TIME, latest=maybe(TIME), unmeasured_kinds=list_of(TEXT))
WHY = whole_object(
    id=WHOLE, kind=TEXT, tenant=TEXT, state=TEXT, at=TIME,
    reasons={**list_of(REASON), "minItems": 1}, position=maybe(WHOLE),
    position_exact=maybe(YES_OR_NO), position_of=maybe(WHOLE), estimated_start=maybe(START),
)  # fmt: skip
NODE_RECORD = shape_of(
    NodeRecord, but="name pause_seconds", id={"type": "string", "format": "uuid"}, node=TEXT,
    live=YES_OR_NO, phase={"enum": list(get_args(NodePhase))}, kinds_whole=YES_OR_NO,
    kinds={"type": "object", "additionalProperties": shape_of(KnownKind)},
)  # fmt: skip
DUTY = shape_of(
    DutyRecord, but="node_id held_seconds lease_seconds_left now", tenant=TEXT,
    held_for=maybe(NUMBER),
)  # fmt: skip
SCHEDULE = shape_of(
    ScheduleRecord, Schedule, but="now rhythm source", payload=ANYTHING, priority=maybe(WHOLE),
    cron=maybe(TEXT), timezone=maybe(TEXT), every_seconds=maybe(NUMBER), last_job_id=maybe(ID),
    last_job_state=maybe(STATE), missed_slots=COUNT, next=list_of(TIME),
    seconds_until_next=maybe(NUMBER),
)  # fmt: skip
NAMES = list_of(TEXT)
CHANGES = list_of(
    whole_object(
        key=TEXT, **{"from": ANYTHING, "to": ANYTHING}, applies={"enum": list(get_args(When))}
    )
)
NAMED_CHANGES = whole_object(
    added=NAMES, changed=list_of(whole_object(name=TEXT, keys=CHANGES)), removed=NAMES
)

ENDED = {
    **dict.fromkeys(("succeeded", "failed", "canceled", "retried"), COUNT),
    **dict.fromkeys(QUANTILES, maybe(NUMBER)),
}
LOOK = {name: maybe(NUMBER if name == "oldest_seconds" else COUNT) for name in LOOK_FIELDS}
HISTORY = whole_object(
    since=TIME, until=TIME, step_seconds=COUNT,
    points=list_of(whole_object(at=TIME, **LOOK, **ENDED)),
    kinds=list_of(whole_object(kind=TEXT, points=list_of(whole_object(at=TIME, **ENDED)))),
    marks=list_of(whole_object(at=TIME, what=TEXT, node=TEXT, said=TEXT)),
)  # fmt: skip

COMPONENTS: Mapping[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457.",
        "properties": {
            "type": TEXT, "title": TEXT, "status": WHOLE, "detail": TEXT, "faults": NAMES,
        },
        "required": ["type", "title", "status"],
    },
    "JobWanted": {**whole_object(**WANTED), "required": ["kind"]},
    "Job": JOB,
    "JobBrief": {
        **whole_object(id=ID, tenant=TEXT),
        "description": "Instead of the job, if the store did not answer a second time.",
    },
    "Jobs": {
        **whole_object(
            jobs=list_of(ref("Job")), next=maybe(TEXT),
            looked={
                **whole_object(jobs=COUNT, back_to=TIME),
                "description": "How far the search came, if it ended before it had looked at all"
                " jobs: `next` goes on.",
            },
        ),
        "required": ["jobs", "next"],
    },
    "Target": whole_object(
        target=NAME, halted=YES_OR_NO, job_id=maybe(ID), job_state=maybe(STATE),
        reserved=YES_OR_NO, waiting=COUNT, next_ids=list_of(ID),
    ),
    "Queue": whole_object(
        paused=YES_OR_NO, changed=YES_OR_NO, paused_at=maybe(TIME), paused_by=maybe(TEXT)
    ),
    "Status": whole_object(
        healthy=YES_OR_NO, verdict=TEXT, node=ref("Node"), counts=maybe(ref("Counts")),
        remarks=NAMES,
    ),
    "Node": shape_of(
        NodeStatus, last_decision=maybe(ref("Decision")),
        ignored=list_of(shape_of(Ignored, job_id=ID)),
    ),
    "Counts": shape_of(
        Counts, but="by_state targets_halted",
        jobs=whole_object(**{state.value: COUNT for state in JobState}),
    ),
    "Decision": shape_of(Decision, at=TIME, due_exact=YES_OR_NO),
    "Workers": whole_object(workers=list_of(shape_of(WorkerView, job_id=maybe(ID)))),
    "Why": WHY,
    "JobLog": whole_object(
        id=ID, state=STATE, next=TEXT, more=YES_OR_NO,
        lines=list_of(
            whole_object(
                attempt=COUNT, number=COUNT, at=maybe(TIME), stream=maybe(enum_of(STREAMS)),
                level=maybe(enum_of(LEVELS)), text=TEXT,
            )
        ),
    ),
    "Nodes": whole_object(nodes=list_of(NODE_RECORD), warnings=NAMES),
    "Config": whole_object(
        node=TEXT, version=TEXT, store=TEXT, generation=COUNT, settings={"type": "object"},
        kinds={"type": "object", "additionalProperties": TEXT},
    ),
    "History": HISTORY,
    "Duties": whole_object(duties=list_of(DUTY)),
    "Schedules": whole_object(schedules=list_of(SCHEDULE)),
    "Scaling": whole_object(
        decisions=list_of(
            shape_of(
                Decision, at=TIME, until=TIME, ticks=COUNT, node=TEXT, node_id=TEXT,
                due_exact=YES_OR_NO,
            )
        ),
        hours=list_of(shape_of(ComparedHour, error_ratio=maybe(NUMBER))),
        next=maybe(TIME), whole=YES_OR_NO,
    ),
    "Reloaded": whole_object(
        node=TEXT, result={"enum": ["applied", "unchanged"]}, generation=COUNT, changed=CHANGES,
        restart=NAMES, tenants=whole_object(added=NAMES, removed=NAMES, moved=NAMES),
        kinds=NAMED_CHANGES, schedules=NAMED_CHANGES,
    ),
    "Started": whole_object(node=TEXT, result={"enum": ["started"]}),
}  # fmt: skip
JOB_OR_BRIEF: Schema = {"anyOf": [ref("Job"), ref("JobBrief")]}


ABOUT = "The queue and the node of musterd. Every error is a problem (RFC 9457)."
TOKEN = {"type": "http", "scheme": "bearer", "description": "Needed if tokens are configured."}

# Refusals of every route, and of routes that need a token, a store or a query, or take a body.
ANYBODY = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.MISDIRECTED_REQUEST: "The Host header names another machine.",
    HTTPStatus.FORBIDDEN: "The token lacks the scope, or another site's page sent the request.",
}
BEHIND_TOKEN = {HTTPStatus.UNAUTHORIZED: "The token is missing or wrong."}
FOR_PROGRAMS = {
    HTTPStatus.NOT_FOUND: "There is no such tenant.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Something in the request is invalid; `detail` says what.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The store is not available; try again after Retry-After.",
}
WITH_BODY = {
    HTTPStatus.BAD_REQUEST: "The body is incomplete.",
    HTTPStatus.REQUEST_TIMEOUT: "The body came too slowly.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The Content-Type is not application/json.",
}
HEADERS = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate",),
    HTTPStatus.SERVICE_UNAVAILABLE: ("Retry-After",),
}


def document(operations: Sequence[Operation], version: str) -> dict[str, object]:
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "musterd",
            "version": version,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": dict(COMPONENTS), "securitySchemes": {"token": TOKEN}},
    }


def refusals_of(operation: Operation) -> Mapping[HTTPStatus, str]:
    """All problems of the route, and what they mean."""
    behind = BEHIND_TOKEN if operation.scope else {}
    programs = FOR_PROGRAMS if operation.minds_query else {}
    body = WITH_BODY if operation.body else {}
    return {**ANYBODY, **behind, **programs, **body, **operation.refusals}


def _described(operation: Operation) -> dict[str, object]:
    said: dict[str, object] = {
        "operationId": operation.name,
        "summary": operation.about,
        "security": [{}, {"token": []}] if operation.scope else [{}],
        "responses": _responses(operation),
    }
    if operation.scope:
        said["description"] = f"Needs a token with the scope `{operation.scope}`, or `admin`."
    if parameters := [*_places(operation), *map(_query, operation.params)]:
        said["parameters"] = parameters
    if operation.body:
        said["requestBody"] = {"required": True, "content": _content(JSON_TYPE, operation.body)}
    return said


def _responses(operation: Operation) -> dict[str, object]:
    said: dict[str, object] = {}
    for status, reply in operation.replies.items():
        said[str(status)] = _reply(reply, HTTPStatus(status).phrase)
    for refusal, about in refusals_of(operation).items():
        reply = Reply(about, ref("Problem"), PROBLEM_TYPE, HEADERS.get(refusal, ()))
        said[str(refusal.value)] = _reply(reply, refusal.phrase)
    return dict(sorted(said.items()))


def _reply(reply: Reply, phrase: str) -> dict[str, object]:
    said: dict[str, object] = {"description": reply.about or phrase}
    if reply.schema is not None:
        said["content"] = _content(reply.media_type, reply.schema)
    if reply.headers:
        said["headers"] = {name: {"schema": TEXT, "required": True} for name in reply.headers}
    return said


def _content(media_type: str, schema: Schema) -> dict[str, object]:
    return {media_type: {"schema": dict(schema)}}


def _places(operation: Operation) -> Iterable[dict[str, object]]:
    for name, schema in operation.places.items():
        yield {"name": name, "in": "path", "required": True, "schema": dict(schema)}


def _query(param: Param) -> dict[str, object]:
    schema = {"type": "array", "items": dict(param.schema)} if param.many else dict(param.schema)
    return {"name": param.name, "in": "query", "description": param.about, "schema": schema}
