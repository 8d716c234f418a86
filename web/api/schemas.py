"""The shapes of what goes in and out, as JSON Schema: the components of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from musterd.config.job_options import KIND_LENGTH_MAX, OPTIONS, JobOption
from musterd.config.schedules import Missed, Overlap
from musterd.config.validators import When
from musterd.manager.node.status import (
    Decision,
    NodePhase,
    NodeStatus,
    TenantStatus,
    WorkerView,
)
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.reasons import Code
from musterd.store.report import PLAIN_OPTIONS
from musterd.web.api.operation import Schema
from musterd.web.server.requests import ID_MAX, NAME_LENGTH_MAX
from musterd.workers.observer import Ignored

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
STATE: Schema = {"type": "string", "enum": [state.value for state in JobState]}
OUTCOME: Schema = {"type": "string", "enum": [outcome.value for outcome in AttemptOutcome]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    if not schema:
        return schema  # any value, null too
    if "type" in schema and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def whole_object(**properties: Schema) -> Schema:
    """An object with exactly these names."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def shape_of(kind: type, **own: Schema) -> Schema:
    """The object that a class of values becomes; `own`: for fields whose type says too little."""
    hints = get_type_hints(kind)
    return whole_object(
        **{name: own[name] if name in own else _of_type(hint) for name, hint in hints.items()}
    )


def _of_type(hint: Any) -> Schema:
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) is UnionType:
        (present,) = (one for one in get_args(hint) if one is not NoneType)
        return maybe(_of_type(present))
    return {int: COUNT, float: NUMBER, str: TEXT}[hint]


def _shown(option: JobOption) -> Schema:
    schema = option.type.schema
    return maybe(schema) if NewJob._field_defaults[option.name] is None else schema


def _given(option: JobOption) -> Schema:
    notes = [option.help]
    if option.excludes:
        notes.append(f"Excludes {option.excludes}.")
    if option.needs:
        notes.append(f"Needs {option.needs}.")
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
ATTEMPT = whole_object(
    attempt=WHOLE,
    worker=maybe(WHOLE),
    node=maybe(TEXT),
    started_at=maybe(TIME),
    finished_at=maybe(TIME),
    outcome=maybe(OUTCOME),
    error=maybe(ERROR),
    log=maybe(TEXT),
)
PHASE = whole_object(
    name=TEXT, state=TEXT, progress=PERCENT, result=ANYTHING, attempts=COUNT,
    started_at=maybe(TIME), finished_at=maybe(TIME),
)  # fmt: skip
PROGRESS = whole_object(overall=PERCENT, phase=maybe(TEXT), phases=list_of(PHASE), note=maybe(TEXT))
WEBHOOK = whole_object(url=TEXT, sent_at=maybe(TIME), attempts=COUNT)
JOB = whole_object(
    id=ID,
    kind=TEXT,
    tenant=TEXT,
    state=STATE,
    payload=ANYTHING,
    result=ANYTHING,
    error=maybe(ERROR),
    reason=maybe(TEXT),
    **{option.name: _shown(option) for option in PLAIN_OPTIONS},
    attempt=COUNT,
    max_attempts=maybe(WHOLE),
    created_at=TIME,
    run_at=TIME,
    started_at=maybe(TIME),
    finished_at=maybe(TIME),
    lease_owner=maybe(TEXT),
    lease_expires_at=maybe(TIME),
    heartbeat_at=maybe(TIME),
    cancel_requested=YES_OR_NO,
    progress=PROGRESS,
    attempts=list_of(ATTEMPT),
    cleared_at=maybe(TIME),
    webhook=maybe(WEBHOOK),
    stale_at=maybe(TIME),
)
BRIEF = whole_object(id=ID, tenant=TEXT)
DECISION = shape_of(Decision, at=TIME)
NODE = shape_of(
    NodeStatus,
    last_decision=maybe(ref("Decision")),
    ignored=list_of(shape_of(Ignored, job_id=ID)),
    tenants=list_of(shape_of(TenantStatus)),
    reload_faults=list_of(TEXT),
)
COUNTS = whole_object(
    jobs=whole_object(**{state.value: COUNT for state in JobState}),
    enqueued_total=COUNT,
    due=COUNT,
    oldest_due_seconds=NUMBER,
    paused_at=maybe(TIME),
    paused_by=maybe(TEXT),
)

REASON = {
    **whole_object(
        code={"type": "string", "enum": [code.value for code in Code]}, text=TEXT, who=TEXT,
        what={"type": "object"}, since=TIME, until=TIME, do=TEXT,
    ),
    "required": ["code", "text"],
}  # fmt: skip
START = whole_object(earliest=TIME, latest=maybe(TIME), unmeasured_kinds=list_of(TEXT))
WHY = whole_object(
    id=WHOLE,
    kind=TEXT,
    tenant=TEXT,
    state=TEXT,
    at=TIME,
    reasons={**list_of(REASON), "minItems": 1},
    position=maybe(WHOLE),
    position_exact=maybe(YES_OR_NO),
    position_of=maybe(WHOLE),
    estimated_start=maybe(START),
)
KIND_ON_NODE = whole_object(
    broken=maybe(TEXT), max_running=maybe(COUNT), runs=COUNT, mean_seconds=NUMBER,
    deviation_seconds=NUMBER,
)  # fmt: skip
NODE_RECORD = whole_object(
    id={"type": "string", "format": "uuid"},
    node=TEXT,
    version=TEXT,
    live=YES_OR_NO,
    phase={"enum": list(get_args(NodePhase))},
    started_at=TIME,
    heartbeat_at=TIME,
    silent_seconds=NUMBER,
    idle=COUNT,
    busy=COUNT,
    retiring=COUNT,
    default_count=COUNT,
    max_count=COUNT,
    config_generation=maybe(COUNT),
    config_hash=maybe(TEXT),
    load=maybe(NUMBER),
    kinds={"type": "object", "additionalProperties": KIND_ON_NODE},
    kinds_whole=YES_OR_NO,
)
DUTY = whole_object(
    duty=TEXT,
    tenant=TEXT,
    node=maybe(TEXT),
    acquired_at=maybe(TIME),
    heartbeat_at=maybe(TIME),
    held_for=maybe(NUMBER),
    last_run_at=maybe(TIME),
    runs=COUNT,
    items=COUNT,
    errors=COUNT,
    last_error=maybe(TEXT),
    hand_overs=COUNT,
)
SCHEDULE = whole_object(
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
NAMES = list_of(TEXT)
CHANGES = list_of(
    whole_object(
        key=TEXT, **{"from": ANYTHING, "to": ANYTHING}, applies={"enum": list(get_args(When))}
    )
)
NAMED_CHANGES = whole_object(
    added=NAMES, changed=list_of(whole_object(name=TEXT, keys=CHANGES)), removed=NAMES
)
RELOADED = whole_object(
    node=TEXT,
    result={"enum": ["applied", "unchanged"]},
    generation=COUNT,
    changed=CHANGES,
    restart=NAMES,
    tenants=whole_object(added=NAMES, removed=NAMES, moved=NAMES),
    kinds=NAMED_CHANGES,
    schedules=NAMED_CHANGES,
)

COMPONENTS: Mapping[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457.",
        "properties": {
            "type": TEXT,
            "title": TEXT,
            "status": WHOLE,
            "detail": TEXT,
            "faults": list_of(TEXT),
        },
        "required": ["type", "title", "status"],
    },
    "JobWanted": {
        "type": "object",
        "properties": WANTED,
        "required": ["kind"],
        "additionalProperties": False,
    },
    "Job": JOB,
    "JobBrief": {
        **BRIEF,
        "description": "Instead of the job, if the store did not answer a second time.",
    },
    "Jobs": whole_object(jobs=list_of(ref("Job")), next=maybe(TEXT)),
    "Target": whole_object(
        target=NAME,
        halted=YES_OR_NO,
        job_id=maybe(ID),
        job_state=maybe(STATE),
        reserved=YES_OR_NO,
        waiting=COUNT,
        next_ids=list_of(ID),
    ),
    "Queue": whole_object(
        paused=YES_OR_NO, changed=YES_OR_NO, paused_at=maybe(TIME), paused_by=maybe(TEXT)
    ),
    "Status": whole_object(
        healthy=YES_OR_NO, verdict=TEXT, node=ref("Node"), counts=maybe(ref("Counts"))
    ),
    "Node": NODE,
    "Counts": COUNTS,
    "Decision": DECISION,
    "Workers": whole_object(workers=list_of(shape_of(WorkerView, job_id=maybe(ID)))),
    "Why": WHY,
    "Nodes": whole_object(nodes=list_of(NODE_RECORD), warnings=list_of(TEXT)),
    "Duties": whole_object(duties=list_of(DUTY)),
    "Schedules": whole_object(schedules=list_of(SCHEDULE)),
    "Scaling": whole_object(decisions=list_of(ref("Decision"))),
    "Reloaded": RELOADED,
    "Started": whole_object(node=TEXT, result={"enum": ["started"]}),
}
JOB_OR_BRIEF: Schema = {"anyOf": [ref("Job"), ref("JobBrief")]}
