"""What the forms of the page do: to one job, to many after a question, to the queue. Each ends in
a page that a reload shows again and nothing does twice.
"""

from __future__ import annotations

from http import HTTPStatus

import attrs
import trio
from starlette.responses import Response

from musterd.store import bulk
from musterd.store.bulk import Tally
from musterd.store.job import Action
from musterd.store.report import control_refusal
from musterd.store.selection import Selection, states_for
from musterd.web.api.jobs import id_of, no_such_job
from musterd.web.api.operation import Call, Handler
from musterd.web.api.queue import halt
from musterd.web.pages.question import Question, Rest, question, unfinished
from musterd.web.server.calling import door_of
from musterd.web.server.problem import Refused
from musterd.web.ui.forms import Form, Wish, done_text, read_form, read_wish, unreadable
from musterd.web.ui.showing import frame_of, go_to, shown

SURVEY_SECONDS = 5.0  # then the question says "or more"
ACT_SECONDS = 8.0  # then the page says how far it is, and asks whether to go on


def acting(action: Action) -> Handler:
    """Gives the handler that does `action` to the job of its path."""

    async def handler(call: Call) -> Response:
        call, _ = await _read(call)
        job_id = id_of(call)
        done = await call.door.engine.control(action, job_id)
        if not done.found:
            raise no_such_job(job_id)
        if not done.allowed:
            raise Refused(HTTPStatus.CONFLICT, control_refusal(job_id, action, done.state_before))
        did = done_text(action, Tally(done=1, requested=int(done.requested)))
        return go_to(frame_of(call).at(f"/ui/jobs/{job_id}", did=did))

    return handler


def switching(*, pause: bool) -> Handler:
    """Gives the handler that halts all claims, or lets them go on."""

    async def handler(call: Call) -> Response:
        call, _ = await _read(call)
        await (halt(call) if pause else call.door.engine.resume_queue())
        return go_to(frame_of(call).at("/"))

    return handler


async def ask(call: Call) -> Response:
    """Says what is meant, and asks."""
    call, form = await _read(call)
    wish, frame = read_wish(form), frame_of(call)
    if not wish.is_all:
        return shown(frame, question(frame, Question(wish.action, wish.which, wish.ids)))
    engine = call.door.engine
    end_local = trio.current_time() + SURVEY_SECONDS
    which = await bulk.pin(engine, _selection(wish))
    found = await bulk.survey(engine, which, None, lambda: trio.current_time() < end_local)
    asked = Question(wish.action, wish.which, (), found, which.until_id or 0)
    return shown(frame, question(frame, asked))


async def act(call: Call) -> Response:
    """Does it: all that was chosen, or as much of all that fits as there is time for."""
    call, form = await _read(call)
    wish, frame, engine = read_wish(form), frame_of(call), call.door.engine
    if not wish.is_all:
        return _done(call, wish, await bulk.act_on_these(engine, wish.action, wish.ids))
    if not wish.until_id:
        raise unreadable("until: wanted the last job that is meant")
    end_local = trio.current_time() + ACT_SECONDS
    which = attrs.evolve(_selection(wish), until_id=wish.until_id)

    def go_on(_: Tally) -> bool:
        return trio.current_time() < end_local

    order = bulk.Order(wish.action, which, None, go_on, wish.after_id)
    tally = await bulk.act(engine, order)
    if not tally.stopped:
        return _done(call, wish, tally)
    asked = Question(wish.action, wish.which, until_id=wish.until_id)
    return shown(frame, unfinished(frame, Rest(asked, tally, tally.through_id)))


def _selection(wish: Wish) -> Selection:
    """The jobs that fit and can be told to do that."""
    which, allowed = wish.which, states_for(wish.action)
    states = tuple(one for one in allowed if not which.states or one in which.states)
    return Selection(
        states,
        (which.kind,) if which.kind else (),
        (which.target,) if which.target else (),
    )


def _done(call: Call, wish: Wish, tally: Tally) -> Response:
    """Back to the list as it was filtered."""
    did = done_text(wish.action, tally)
    return go_to(frame_of(call).at("/ui/jobs", **wish.which.query, did=did))


async def _read(call: Call) -> tuple[Call, Form]:
    """The form, and the call at the door of its tenant."""
    form = await read_form(call.request)
    return attrs.evolve(call, door=door_of(call.site, form.tenant)), form
