"""Every route of the API and of the page, and the application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus

import trio
from attrs import evolve
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from musterd import __version__
from musterd.config.outside import HttpScope
from musterd.store.event_types import EVENT_TYPES, GROUPS, event_type
from musterd.store.job_log import POSITION_PATTERN, position_of
from musterd.store.lifecycle import Action
from musterd.web.api import job_log, jobs, node
from musterd.web.api.log_readers import LogReaders
from musterd.web.api.openapi import ID, JOB_OR_BRIEF, NAME, STATE, TEXT, document, ref
from musterd.web.api.operation import Handler, Operation, Param, Reply, Site
from musterd.web.deps import HttpDeps
from musterd.web.pages.layout import ASSETS
from musterd.web.pages.pictures import RANGES
from musterd.web.samples import Samples
from musterd.web.server.answers import framework_refusal
from musterd.web.server.requests import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    endpoint,
    read_cursor,
    read_flag,
    read_job_id,
    read_job_ids,
    read_limit,
    read_name,
    read_range,
    read_state,
    read_step,
    read_time_of,
)
from musterd.web.ui import actions, views
from musterd.web.ui.live import LiveViews
from musterd.web.ui.past import PastReader
from musterd.web.ui.sessions import Sessions

TENANT = Param("tenant", "The tenant whose queue is meant; default: `default`.", NAME, read_name)
STATES = Param("state", "Only jobs in this state; may be repeated.", STATE, read_state, many=True)
KIND = Param("kind", "Only jobs of this kind.", NAME, read_name)
TARGET = Param("target", "Only jobs of this target.", NAME, read_name)
DEDUP_KEY = Param("dedup_key", "Only jobs with this deduplication key.", NAME, read_name)
ERROR_TEXT = Param(
    "error", "Only jobs whose error (`type: message`) has this text in it, in whatever case.", NAME,
    read_name,
)  # fmt: skip
JOBS_SINCE = Param(
    "since", "Only jobs made from then on: a time (RFC 3339, or `03:12`, UTC), or how long ago"
    " (`-2h`).", TEXT, str,
)  # fmt: skip
JOBS_UNTIL = Param("until", "Only jobs made before then.", TEXT, str)
TIME_OF = Param(
    "time", "`ended`: `since` and `until` are about when jobs ended, not when they were made.",
    {"type": "string", "enum": ["made", "ended"], "default": "made"}, read_time_of,
)  # fmt: skip
SEARCH = (STATES, KIND, TARGET, DEDUP_KEY, ERROR_TEXT, JOBS_SINCE, JOBS_UNTIL, TIME_OF)
LIMIT = Param(
    "limit", "The most jobs on a page. A page of large jobs may have fewer.",
    {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT}, read_limit,
)  # fmt: skip
RUNS = Param(
    "limit", "The most rows; the newest are taken.",
    {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_MAX}, read_limit,
)  # fmt: skip
CURSOR = Param("cursor", "The `next` of the previous page.", TEXT, read_cursor)
JOB = Param("job", "Only events of this job.", ID, read_job_id)
TYPES = Param(
    "type", "Only events of this type (`job.failed`) or group (`job`); may be repeated.",
    {"type": "string", "enum": [*EVENT_TYPES, *GROUPS]}, event_type, many=True,
)  # fmt: skip
LAST_EVENT = Param(
    "last_event_id", "Continue after this event, like the header Last-Event-ID.", TEXT, str
)
SNAPSHOT = Param(
    "snapshot", "`false`: begin with the next event; after a gap there is a snapshot all the same.",
    {"type": "boolean", "default": True}, read_flag,
)  # fmt: skip
FLAG = {"type": "boolean", "default": False}
SINCE = Param(
    "since", "From here on: a time (RFC 3339, or `03:12`, UTC), or how long ago (`-2h`).", TEXT, str
)
UNTIL = Param("until", "Up to here, likewise; default: now.", TEXT, str)
STEP = Param(
    "step",
    "The shortest step wanted, in seconds; the answer's may be longer, where shorter ones are no"
    " longer kept.",
    {"type": "integer", "minimum": 1, "maximum": 9_999_999}, read_step,
)  # fmt: skip
AFTER = Param(
    "after", "Only lines behind this one: the `next` of an earlier answer, or ATTEMPT.LINE.",
    {"type": "string", "pattern": POSITION_PATTERN}, position_of,
)  # fmt: skip
FOLLOW = Param("follow", "`true`: as server-sent events.", FLAG, read_flag)
RANGE = Param(
    "range", "How far back the charts reach.", {"type": "string", "enum": [*RANGES]}, read_range
)
WAIT = Param(
    "wait", "`false`: return without waiting for the result.",
    {"type": "boolean", "default": True}, read_flag,
)  # fmt: skip

PLAIN = Reply("ok", TEXT, "text/plain; charset=utf-8")
NO_JOB = {HTTPStatus.NOT_FOUND: "No such job, or no such tenant."}
ACTED = {
    200: Reply("Done: the job as it is now.", JOB_OR_BRIEF),
    202: Reply("A worker holds the job and has been asked.", JOB_OR_BRIEF),
}
REFUSED_ACTION = {**NO_JOB, HTTPStatus.CONFLICT: "The job's state does not allow it."}
ABOUT = {
    Action.CANCEL: "Cancel a job: at once if it waits, else as soon as its worker is told.",
    Action.PAUSE: "Pause a job until it is resumed: at once if it waits, else as soon as its worker"
    " is told.",
    Action.RESUME: "Queue a paused or failed job again, with a fresh budget of attempts.",
    Action.RELEASE: "Queue a job that was enqueued with `hold`.",
    Action.CLEAR: "Mark a failed job as dealt with; a paused one is canceled.",
}


def _action(action: Action) -> Operation:
    return Operation(
        "POST", f"/jobs/{{id}}/{action.value}", action.value, ABOUT[action], "admin",
        jobs.action_handler(action), ACTED, (TENANT,), {"id": ID}, refusals=REFUSED_ACTION,
    )  # fmt: skip


def _read(path: str, name: str, about: str, handler: Handler, shape: str) -> Operation:
    reply = Reply("", ref(shape))
    return Operation("GET", path, name, about, "read", handler, {200: reply}, (TENANT,))


OPERATIONS: Sequence[Operation] = (
    Operation(
        "POST", "/jobs", "enqueue", "Enqueue one job.", "enqueue", jobs.enqueue,
        {
            201: Reply("The new job.", JOB_OR_BRIEF, headers=("Location",)),
            200: Reply("The job that already holds the dedup_key; none was made.", JOB_OR_BRIEF),
        },
        (TENANT,), body=ref("JobWanted"),
    ),
    Operation(
        "GET", "/jobs", "list_jobs", "List jobs, newest first, a page at a time.", "read",
        jobs.list_jobs, {200: Reply("One page; `next` is null on the last.", ref("Jobs"))},
        (*SEARCH, LIMIT, CURSOR, TENANT),
    ),
    Operation(
        "GET", "/jobs/{id}", "show_job", "One job with all its attempts.", "read", jobs.show,
        {200: Reply("The job.", ref("Job"))}, (TENANT,), {"id": ID}, refusals=NO_JOB,
    ),
    Operation(
        "GET", "/jobs/{id}/why", "why", "Why a job does not run now.", "read", jobs.show_why,
        {200: Reply("The reasons, the decisive one first.", ref("Why"))}, (TENANT,), {"id": ID},
        refusals=NO_JOB,
    ),
    Operation(
        "GET", "/jobs/{id}/log", "show_log",
        "What a job has logged, also while it runs; with `follow`, or where `Accept` asks for"
        " text/event-stream, as server-sent events until it ends.", "read", job_log.show,
        {200: Reply("Lines in order; `next` is the `after` for those that follow.", ref("JobLog"))},
        (AFTER, FOLLOW, TENANT), {"id": ID}, refusals=NO_JOB,
    ),
    *(_action(action) for action in Action),
    Operation(
        "DELETE", "/jobs/{id}", "delete_job",
        "Delete a job that has ended, with all that belongs to it.", "admin", jobs.delete,
        {204: Reply("It is gone.")}, (TENANT,), {"id": ID}, refusals=REFUSED_ACTION,
    ),
    Operation(
        "GET", "/targets/{target}", "show_target", "The job that holds a target, and those behind.",
        "read", jobs.show_target, {200: Reply("The target; free if no job has it.", ref("Target"))},
        (TENANT,), {"target": NAME},
    ),
    Operation(
        "POST", "/targets/{target}/jobs/{id}/resume/", "resume_of_target",
        "Resume the job that halts a target; 404 if the job has another target.", "admin",
        jobs.resume_of_target, ACTED, (TENANT,), {"target": NAME, "id": ID},
        refusals=REFUSED_ACTION,
    ),
    Operation(
        "POST", "/queue/pause", "pause_queue", "Pause the queue: no further job is claimed.",
        "admin", node.pause_queue, {200: Reply("The queue is paused.", ref("Queue"))}, (TENANT,),
    ),
    Operation(
        "POST", "/queue/resume", "resume_queue", "Resume the queue.", "admin",
        node.resume_queue, {200: Reply("The queue is not paused.", ref("Queue"))}, (TENANT,),
    ),
    Operation(
        "POST", "/drain", "drain", "Drain the node: running jobs finish, no more are claimed.",
        "admin", node.drain, {202: Reply("The node drains.", ref("Status"))}, (TENANT,),
    ),
    Operation(
        "POST", "/reload", "reload", "Reload configuration and catalog.", "admin", node.reload,
        {
            200: Reply("The new configuration is in use: what changed.", ref("Reloaded")),
            202: Reply("The reload has started; the node's log has the result.", ref("Started")),
        },
        (WAIT, TENANT),
        refusals={
            HTTPStatus.CONFLICT: "The node starts or drains, or too many reloads wait.",
            HTTPStatus.UNPROCESSABLE_ENTITY: "It has `faults`; nothing was changed.",
        },
        answer_seconds=node.RELOAD_SECONDS,
    ),
    _read("/status", "status", "The node and its queue. Counts are exact.", node.status, "Status"),
    _read("/workers", "workers", "The crew, worker by worker.", node.workers, "Workers"),
    _read("/schedules", "schedules", "Schedules with their last and next slots.", node.schedules,
        "Schedules"),
    Operation(
        "GET", "/history", "history",
        "The past of the queue, as charts draw it; by default of the last hour.", "read",
        node.history, {200: Reply("", ref("History"))}, (SINCE, UNTIL, STEP, TENANT),
    ),
    Operation(
        "GET", "/scaling", "scaling", "The decisions of the supervisors of all nodes.", "read",
        node.scaling, {200: Reply("Runs of like ones, the oldest first.", ref("Scaling"))},
        (SINCE, UNTIL, RUNS, TENANT),
    ),
    _read("/nodes", "nodes", "The nodes of the store, and where they disagree.", node.nodes,
        "Nodes"),
    Operation(
        "GET", "/config", "config", "The configuration in effect, secrets masked.", "admin",
        node.config, {200: Reply("", ref("Config"))}, (TENANT,),
    ),
    _read("/duties", "duties", "The duties, and the node that has each.", node.duties, "Duties"),
    Operation(
        "GET", "/events", "follow", "Follow events as they happen.", "read", node.follow,
        {200: Reply("Server-sent events.", TEXT, node.MEDIA_TYPE)},
        (JOB, TARGET, KIND, TYPES, LAST_EVENT, SNAPSHOT, TENANT),
    ),
    Operation(
        "GET", "/openapi.json", "openapi", "This document.", "read", node.openapi,
        {200: Reply("An OpenAPI 3.1 document.", {"type": "object"})}, (TENANT,),
    ),
    Operation(
        "GET", "/", "front", "The web page.", "read", views.VIEWS["overview"].show,
        {200: Reply("The page.", TEXT, "text/html; charset=utf-8")}, (RANGE, TENANT),
    ),
    Operation(
        "GET", "/metrics", "metrics", "Metrics for Prometheus.", "metrics", node.metrics,
        {200: Reply("The text format.", TEXT, CONTENT_TYPE_LATEST)}, minds_query=False,
    ),
    Operation(
        "GET", "/livez", "livez", "Liveness probe.", None, node.livez, {200: PLAIN},
        minds_query=False,
    ),
    Operation(
        "GET", "/readyz", "readyz", "Readiness probe: the node runs and its store answers.", None,
        node.readyz, {200: PLAIN}, minds_query=False,
        refusals={HTTPStatus.SERVICE_UNAVAILABLE: "Not ready; `detail` says why."},
    ),
)  # fmt: skip


# The routes of the page are for browsers and may change with it: the API's description leaves
# them out.
FOLLOWED = ("job", "jobs", *views.VIEWS)
DID_LENGTH_MAX = 60


def _read_view(text: str) -> str:
    if text in FOLLOWED:
        return text
    raise ValueError(f"wanted one of {', '.join(FOLLOWED)}")


def _read_optional_name(text: str) -> str | None:
    """An empty field of a form counts as not given."""
    return read_name(text) if text else None


UI_TENANT = evolve(TENANT, read=_read_optional_name)
UI_SEARCH = tuple(
    param if param in (STATES, TIME_OF) else evolve(param, read=_read_optional_name)
    for param in SEARCH
)
DID = Param("did", "The action just done, shown once.", TEXT, lambda text: text[:DID_LENGTH_MAX])
VIEW = Param("view", "The view to follow.", TEXT, _read_view)
OF_JOB = Param("id", "The job that the view shows.", ID, read_job_id)
OF_JOBS = Param("ids", "The jobs that the list shows.", TEXT, read_job_ids)
NEWER = Param("newer", "`true`: newer jobs that match are counted.", FLAG, read_flag)


def _view(path: str, about: str, handler: Handler, *params: Param) -> Operation:
    places = {"id": ID} if "{id}" in path else {}
    return Operation(
        "GET", path, f"ui {path}", about, "read", handler, {}, (*params, UI_TENANT), places
    )


def _form(path: str, about: str, handler: Handler, scope: HttpScope | None = "admin") -> Operation:
    return Operation("POST", path, f"ui {path}", about, scope, handler, {}, minds_query=False)


def _open(path: str, about: str, handler: Handler) -> Operation:
    return Operation("GET", path, f"ui {path}", about, None, handler, {}, minds_query=False)


UI_OPERATIONS: Sequence[Operation] = (
    _view("/ui/jobs", "The list of jobs with its filter.", views.list_jobs,
        *UI_SEARCH, CURSOR, DID),
    _view("/ui/jobs/{id}", "One job.", views.show_job, DID),
    _view("/ui/nodes", "Nodes, duties, workers.", views.VIEWS["nodes"].show),
    _view("/ui/scaling", "The journal of the supervisor.", views.VIEWS["scaling"].show, RANGE),
    _view("/ui/kinds", "Kinds of work.", views.VIEWS["kinds"].show),
    _view("/ui/schedules", "Schedules and their slots.", views.VIEWS["schedules"].show),
    _view("/ui/failures", "What fails, by kind and error.", views.VIEWS["failures"].show),
    evolve(
        _view("/ui/configuration", "The settings in effect.", views.show_configuration),
        scope="admin",
    ),
    _view("/ui/webhooks", "The latest messages.", views.VIEWS["webhooks"].show),
    _view("/ui/events", "The latest events.", views.VIEWS["events"].show),
    _form("/ui/webhooks/resend", "Sends a message again.", actions.resend),
    _form("/ui/schedules/act", "Pauses or resumes a schedule, or runs it now.",
        actions.act_on_schedule),
    _view("/ui/live", "Changes in a view, as server-sent events.", views.live_updates, VIEW,
        OF_JOB, RANGE, OF_JOBS, NEWER, *UI_SEARCH),
    _view("/ui/find", "Leads to a job by its number.", actions.find, OF_JOB),
    _form("/ui/jobs/enqueue", "Makes a job.", actions.enqueue),
    _form("/ui/jobs/confirm", "Says how many jobs are meant, and asks.", actions.confirm),
    _form("/ui/jobs/act", "Acts on the jobs that were confirmed.", actions.act),
    *(
        _form(f"/ui/jobs/{{id}}/{one.value}", f"{one.value} one job.", actions.job_action(one))
        for one in Action
    ),
    evolve(
        _view("/ui/jobs/{id}/delete", "Asks whether to delete a job.", views.ask_to_delete),
        scope="admin",
    ),
    _form("/ui/jobs/{id}/delete", "Deletes one job.", actions.delete),
    _form("/ui/jobs/{id}/again", "Makes a job like this one.", actions.run_again),
    _form("/ui/queue/pause", "Pauses the queue.", actions.queue_switch(pause=True)),
    _form("/ui/queue/resume", "Resumes the queue.", actions.queue_switch(pause=False)),
    _open("/ui/sign-in", "Leads to the first view.", actions.show_first_view),
    _form("/ui/sign-in", "Begins a session for a token.", actions.sign_in, None),
    _form("/ui/sign-out", "Ends the session.", actions.sign_out, None),
    *(_open(one.path, "A file of the page.", views.asset_handler(one)) for one in ASSETS.values()),
)  # fmt: skip

ALL_OPERATIONS = (*OPERATIONS, *UI_OPERATIONS)

# For probes, which carry no token, and for people about to sign in.
OPEN_PATHS = frozenset(one.path for one in ALL_OPERATIONS if one.scope is None)

THREADS_MAX = 2  # that write large answers; as many more read large bodies


def application(deps: HttpDeps, sessions: Sessions, samples: Samples) -> Starlette:
    """Must run inside Trio."""

    @cache
    def describe() -> Mapping[str, object]:
        return document(OPERATIONS, __version__)

    site = Site(
        deps=deps,
        describe=describe,
        rendering=trio.CapacityLimiter(THREADS_MAX),
        reading=trio.CapacityLimiter(THREADS_MAX),
        sessions=sessions,
        samples=samples,
        past=PastReader(),
        live=LiveViews(),
        log_readers=LogReaders(),
    )

    async def on_refusal(request: Request, error: Exception) -> Response:
        return await framework_refusal(deps.node.status(), request, error)

    handlers = {HTTPException: on_refusal, Exception: on_refusal}
    app = Starlette(routes=_routes(site), exception_handlers=handlers)
    app.router.redirect_slashes = False  # the guard has removed the one that makes no difference
    return app


def _routes(site: Site) -> list[Route]:
    """One route per path, so that a wrong method is told all the right ones."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in ALL_OPERATIONS:
        # The guard removes a slash from the end of every path but the front page's.
        path = operation.path.rstrip("/") or "/"
        paths.setdefault(path, {})[operation.method] = operation
    return [
        Route(path, endpoint(site, by_method), methods=list(by_method))
        for path, by_method in paths.items()
    ]
