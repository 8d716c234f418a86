"""Every route there is: the application is made of this table, and so is its description."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST

from musterd.store.event_names import EVENT_TYPES, GROUPS, event_type
from musterd.store.job import Action
from musterd.web.api import cluster, events, jobs, node, queue, reload, schedules, targets, why
from musterd.web.api.operation import Handler, Operation, Param, Reply
from musterd.web.api.schemas import ID, JOB_OR_BRIEF, NAME, STATE, TEXT, ref
from musterd.web.server import asked
from musterd.web.ui import views

TENANT = Param("tenant", "Whose queue; `default` unless it is given.", NAME, asked.name)
STATES = Param("state", "Only jobs in this state; may be given several times.", STATE, asked.state,
    many=True)  # fmt: skip
KIND = Param("kind", "Only jobs of this kind.", NAME, asked.name)
TARGET = Param("target", "Only jobs of this target.", NAME, asked.name)
LIMIT = Param(
    "limit",
    "How many jobs a page has at most. A page of large jobs may have fewer.",
    {"type": "integer", "minimum": 1, "maximum": asked.LIMIT_MAX, "default": asked.LIMIT_DEFAULT},
    asked.limit,
)
JOB = Param("job", "Only events of this job.", ID, asked.job_id)
TYPES = Param(
    "type", "Only these, as `job.failed`, or all of a group, as `job`; may be given several times.",
    {"type": "string", "enum": [*EVENT_TYPES, *GROUPS]}, event_type, many=True,
)  # fmt: skip
LAST_EVENT = Param(
    "last_event_id", "Go on behind this event, as with the header Last-Event-ID.", TEXT, str
)
CURSOR = Param("cursor", "The `next` of the page before.", TEXT, asked.cursor)

PLAIN = Reply("ok", TEXT, "text/plain; charset=utf-8")
NO_JOB = {HTTPStatus.NOT_FOUND: "There is no such job, or no such tenant."}
BODY = {
    HTTPStatus.BAD_REQUEST: "The body has no end.",
    HTTPStatus.REQUEST_TIMEOUT: "The body came too slowly.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not announced as JSON.",
}
ACTED = {
    200: Reply("It is done: the job as it is now.", JOB_OR_BRIEF),
    202: Reply("The job is held by a worker, who has been asked.", JOB_OR_BRIEF),
}
REFUSED_ACTION = {**NO_JOB, HTTPStatus.CONFLICT: "The job's state does not allow it."}
ABOUT = {
    Action.CANCEL: "End a job: one that waits at once, a running one as soon as its worker hears.",
    Action.PAUSE: "Halt a job until it is resumed; a running one as soon as its worker hears.",
    Action.RESUME: "Put a paused or failed job back into the queue, with a fresh budget.",
    Action.RELEASE: "Let a job go that was enqueued with `hold`.",
    Action.CLEAR: "Note that somebody has seen to a failed job; a paused one is canceled.",
}


def _acting(action: Action) -> Operation:
    return Operation(
        "POST", f"/jobs/{{id}}/{action.value}", action.value, ABOUT[action], "admin",
        jobs.acting(action), ACTED, (TENANT,), {"id": ID}, refusals=REFUSED_ACTION,
    )  # fmt: skip


def _reading(path: str, name: str, about: str, handler: Handler, shape: str) -> Operation:
    reply = Reply("", ref(shape))
    return Operation("GET", path, name, about, "read", handler, {200: reply}, (TENANT,))


OPERATIONS: Sequence[Operation] = (
    Operation(
        "POST", "/jobs", "enqueue", "Put one job into the queue.", "enqueue", jobs.enqueue,
        {
            201: Reply("The job is made.", JOB_OR_BRIEF, headers=("Location",)),
            200: Reply("None was made: this is the job that holds the dedup_key.", JOB_OR_BRIEF),
        },
        (TENANT,), body=ref("JobWanted"), refusals=BODY,
    ),
    Operation(
        "GET", "/jobs", "list_jobs", "Jobs, newest first, a page at a time.", "read",
        jobs.list_jobs, {200: Reply("One page; `next` is null on the last.", ref("Jobs"))},
        (STATES, KIND, TARGET, LIMIT, CURSOR, TENANT),
    ),
    Operation(
        "GET", "/jobs/{id}", "show_job", "One job with all of its attempts.", "read", jobs.show,
        {200: Reply("The job.", ref("Job"))}, (TENANT,), {"id": ID}, refusals=NO_JOB,
    ),
    Operation(
        "GET", "/jobs/{id}/why", "why", "What keeps a job from running now.", "read", why.show,
        {200: Reply("The first reason first.", ref("Why"))}, (TENANT,), {"id": ID},
        refusals=NO_JOB,
    ),
    *(_acting(action) for action in Action),
    Operation(
        "GET", "/targets/{target}", "show_target", "Whose turn it is at a target.", "read",
        targets.show, {200: Reply("The target; one without jobs is free.", ref("Target"))},
        (TENANT,), {"target": NAME},
    ),
    Operation(
        "POST", "/targets/{target}/jobs/{id}/resume/", "resume_of_target",
        "Resume the job that halts a target; 404 if it is none of its jobs.", "admin",
        targets.resume, ACTED, (TENANT,), {"target": NAME, "id": ID}, refusals=REFUSED_ACTION,
    ),
    Operation(
        "POST", "/queue/pause", "pause_queue", "Let no worker take a further job.", "admin",
        queue.pause, {200: Reply("The queue is paused.", ref("Queue"))}, (TENANT,),
    ),
    Operation(
        "POST", "/queue/resume", "resume_queue", "Let the workers take jobs again.", "admin",
        queue.resume, {200: Reply("The queue is not paused.", ref("Queue"))}, (TENANT,),
    ),
    Operation(
        "POST", "/drain", "drain", "Let the node end: running jobs finish, no more are taken.",
        "admin", node.drain, {202: Reply("It drains, or drained already.", ref("Status"))},
        (TENANT,),
    ),
    reload.operation(TENANT),
    _reading("/status", "status", "The node and its queue. Counts are exact.", node.status,
        "Status"),
    _reading("/workers", "workers", "The crew, worker by worker.", node.workers, "Workers"),
    Operation(
        "GET", "/schedules", "schedules", "When jobs are wanted again and again.", "read",
        schedules.show, {200: Reply("By name.", schedules.SCHEDULES)}, (TENANT,),
    ),
    _reading("/scaling", "scaling", "The supervisor's last decisions.", node.scaling, "Scaling"),
    _reading("/nodes", "nodes", "The nodes of the store, and what they do not agree on.",
        cluster.nodes, "Nodes"),
    _reading("/duties", "duties", "Which node does which duty for all.", cluster.duties, "Duties"),
    Operation(
        "GET", "/events", "follow", "What happens, as it happens, without an end.", "read",
        events.follow, {200: Reply("Server-sent events.", TEXT, events.MEDIA_TYPE)},
        (JOB, TARGET, KIND, TYPES, LAST_EVENT, TENANT),
    ),
    Operation(
        "GET", "/openapi.json", "openapi", "This document.", "read", node.openapi,
        {200: Reply("An OpenAPI 3.1 document.", {"type": "object"})}, (TENANT,),
    ),
    Operation(
        "GET", "/", "front", "A page for people.", "read", views.front,
        {200: Reply("The page.", TEXT, "text/html; charset=utf-8")}, (TENANT,),
    ),
    Operation(
        "GET", "/metrics", "metrics", "Metrics for Prometheus.", "read", node.metrics,
        {200: Reply("The text format.", TEXT, CONTENT_TYPE_LATEST)}, minds_query=False,
    ),
    Operation(
        "GET", "/livez", "livez", "Whether the process turns.", None, node.livez, {200: PLAIN},
        minds_query=False,
    ),
    Operation(
        "GET", "/readyz", "readyz", "Whether it runs and its store works.", None, node.readyz,
        {200: PLAIN}, minds_query=False,
        refusals={HTTPStatus.SERVICE_UNAVAILABLE: "It is not ready; `detail` says why."},
    ),
)  # fmt: skip
