"""The routes of the live page. They are for browsers and may change with it: they are no part of
the API, nor of its description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from musterd.config.settings import HttpScope
from musterd.store.job import Action
from musterd.web.api.operation import Handler, Operation, Param
from musterd.web.api.schemas import ID, TEXT
from musterd.web.pages.assets import ASSETS
from musterd.web.server import asked
from musterd.web.ui import acting, signing, views

VIEWS = ("overview", "job", "nodes", "scaling")
DID_LENGTH_MAX = 60


def _view(text: str) -> str:
    if text in VIEWS:
        return text
    raise ValueError(f"wanted one of {', '.join(VIEWS)}")


def _name(text: str) -> str | None:
    """Fields of a form that were left empty count as not given."""
    return asked.name(text) if text else None


def _did(text: str) -> str:
    return text[:DID_LENGTH_MAX]


TENANT = Param("tenant", "Whose queue; `default` unless it is given.", TEXT, _name)
STATES = Param("state", "Only jobs in this state.", TEXT, asked.state, many=True)
KIND = Param("kind", "Only jobs of this kind.", TEXT, _name)
TARGET = Param("target", "Only jobs of this target.", TEXT, _name)
CURSOR = Param("cursor", "Where the page begins.", TEXT, asked.cursor)
DID = Param("did", "What has just been done.", TEXT, _did)
VIEW = Param("view", "What is looked at.", TEXT, _view)
OF_JOB = Param("id", "The job, of that view.", ID, asked.job_id)


def _shown(
    path: str, about: str, handler: Handler, *params: Param, places: Mapping[str, object] = {}
) -> Operation:
    return Operation(
        "GET", path, f"ui {path}", about, "read", handler, {}, (*params, TENANT),
        dict.fromkeys(places, ID),
    )  # fmt: skip


def _done(path: str, about: str, handler: Handler, scope: HttpScope | None = "admin") -> Operation:
    return Operation("POST", path, f"ui {path}", about, scope, handler, {}, minds_query=False)


UI_OPERATIONS: Sequence[Operation] = (
    _shown("/ui/jobs", "Jobs by a filter, and what can be done to them.", views.list_jobs,
        STATES, KIND, TARGET, CURSOR, DID),
    _done("/ui/jobs/confirm", "Says how many jobs are meant, and asks.", acting.ask),
    _done("/ui/jobs/act", "Does it.", acting.act),
    _shown("/ui/jobs/{id}", "One job.", views.show_job, DID, places={"id": ID}),
    *(
        _done(f"/ui/jobs/{{id}}/{action.value}", f"{action.value} one job.", acting.acting(action))
        for action in Action
    ),
    _done("/ui/queue/pause", "Lets no worker take a further job.",
        acting.switching(pause=True)),
    _done("/ui/queue/resume", "Lets the workers take jobs again.",
        acting.switching(pause=False)),
    _shown("/ui/nodes", "Nodes, duties, workers.", views.show_nodes),
    _shown("/ui/scaling", "The journal of the supervisor.", views.show_scaling),
    _shown("/ui/live", "What is new in a view, as server-sent events.", views.live, VIEW, OF_JOB),
    Operation("GET", "/ui/sign-in", "ui arrive", "Leads to the first view.", None, signing.arrive,
        {}, minds_query=False),
    _done("/ui/sign-in", "A token becomes a session.", signing.enter, None),
    _done("/ui/sign-out", "Ends the session.", signing.leave, None),
    *(
        Operation("GET", asset.path, f"ui {asset.path}", "A file.", None, views.serving(asset), {},
            minds_query=False)
        for asset in ASSETS.values()
    ),
)  # fmt: skip
