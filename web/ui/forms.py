"""What a form of the page sends: bounded, and read as strictly as a query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qsl

import attrs
from starlette.requests import Request

from musterd.store.bulk import Tally
from musterd.store.job import Action, JobState
from musterd.web.pages.jobs import Filter
from musterd.web.server import asked
from musterd.web.server.body import check_type, read_body
from musterd.web.server.problem import Refused

FORM_TYPE = "application/x-www-form-urlencoded"
FORM_BYTES_MAX = 65_536
FIELDS_MAX = 300
IDS_MAX = 200
_DONE = re.compile(r"(cancel|pause|resume|release|clear)\.(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


@attrs.frozen
class Form:
    fields: Mapping[str, Sequence[str]]

    def text(self, name: str) -> str:
        """The one value of a field; empty where there is none."""
        found = self.fields.get(name, ("",))
        if len(found) > 1:
            raise unreadable(f"{name}: given twice, wanted once")
        return found[0]

    @property
    def tenant(self) -> str | None:
        return read_name("tenant", self.text("tenant"))


@attrs.frozen
class Wish:
    """What is to be done to many jobs: to those of `ids`, or to all that fit, from behind
    `after_id` up to `until_id`.
    """

    action: Action
    which: Filter
    is_all: bool
    ids: Sequence[int]
    until_id: int
    after_id: int


async def read_form(request: Request) -> Form:
    """Raises `Refused`."""
    check_type(request.headers.get("content-type", ""), FORM_TYPE)
    raw = await read_body(request, FORM_BYTES_MAX)
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise unreadable("the form cannot be read") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return Form(fields)


def read_wish(form: Form) -> Wish:
    """Reads all of it before anything is done. Raises `Refused`."""
    return Wish(
        _action(form.text("action")),
        Filter(
            _states(form.fields.get("state", ())),
            read_name("kind", form.text("kind")),
            read_name("target", form.text("target")),
        ),
        form.text("which") == "all",
        _ids(form.fields.get("id", ())),
        _position("until", form.text("until")),
        _position("after", form.text("after")),
    )


def read_name(field: str, text: str) -> str | None:
    """A kind, a target or a tenant; empty fields of a form count as not given."""
    try:
        return asked.name(text) if text else None
    except ValueError as error:
        raise unreadable(f"{field}: {error}") from None


def unreadable(said: str) -> Refused:
    return Refused(HTTPStatus.UNPROCESSABLE_ENTITY, said)


def done_text(action: Action, tally: Tally) -> str:
    """What was done, as it stands in the address of the page that says so."""
    return f"{action.value}.{tally.done}.{tally.requested}.{tally.skipped}"


def read_done(text: str) -> tuple[Action, Tally] | None:
    found = _DONE.fullmatch(text)
    if found is None:
        return None
    done, requested, skipped = (int(found[place]) for place in (2, 3, 4))
    return Action(found[1]), Tally(done=max(done, requested), requested=requested, changed=skipped)


def _action(text: str) -> Action:
    try:
        return Action(text)
    except ValueError:
        raise unreadable("action: wanted cancel, pause, resume, release or clear") from None


def _states(given: Sequence[str]) -> tuple[JobState, ...]:
    try:
        return tuple(dict.fromkeys(map(asked.state, given)))
    except ValueError as error:
        raise unreadable(f"state: {error}") from None


def _ids(given: Sequence[str]) -> Sequence[int]:
    if len(given) > IDS_MAX:
        raise unreadable(f"id: at most {IDS_MAX} jobs can be chosen one by one")
    try:
        return sorted({asked.job_id(text) for text in given})
    except ValueError as error:
        raise unreadable(f"id: {error}") from None


def _position(name: str, text: str) -> int:
    """A job's id, or 0."""
    try:
        return asked.job_id(text) if text not in ("", "0") else 0
    except ValueError as error:
        raise unreadable(f"{name}: {error}") from None
