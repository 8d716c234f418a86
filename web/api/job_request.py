"""Reads the body of `POST /jobs`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus

from musterd.catalog.kinds import Catalog, UnknownKind, WorkKind
from musterd.config.faults import Unfit, did_you_mean
from musterd.config.job_options import MOMENT, NAMES, OPTIONS
from musterd.config.webhook_urls import UrlPolicy, check_allowed
from musterd.store.jobs import NewJob
from musterd.store.new_job import new_job
from musterd.store.payload import PayloadLimits, check_payload
from musterd.store.words import EXAMPLE, moment_of
from musterd.web.server.answers import RequestRefused

FIELDS = ("kind", *NAMES, "tenant")


def requested_tenant(body: Mapping[str, object], in_query: str | None) -> str | None:
    """Returns the tenant that the body names, else the query's. Raises `RequestRefused` when they
    differ, and for a field that does not exist.
    """
    _check_fields(body)
    named = body.get("tenant")
    if named is None:
        return in_query
    if not isinstance(named, str):
        raise _invalid("tenant: wanted a text")
    if in_query is not None and in_query != named:
        raise _invalid(f"tenant: found {named!r}, and another one in the URL")
    return named


def requested_job(body: Mapping[str, object], catalog: Catalog, limits: PayloadLimits) -> NewJob:
    """Returns the job; its priority is that of its kind unless the body says otherwise.

    Raises `RequestRefused` or `InputRefused`, which say what was found and what is wanted.
    """
    kind = _kind(catalog, body.get("kind"))
    options = {
        one.name: _moment(one.name, body[one.name]) if one.type is MOMENT else body[one.name]
        for one in OPTIONS
        if body.get(one.name) is not None and one.name != "payload"
    }
    job = new_job(kind.name, body.get("payload"), {"priority": kind.priority, **options})
    _check_size(job.payload, limits)
    check_payload(job.payload, limits)
    return job


def check_webhook(job: NewJob, policy: UrlPolicy) -> None:
    """Raises `RequestRefused` when this node would not send the job's outcome to its webhook."""
    if job.webhook is not None:
        try:
            check_allowed(job.webhook, policy)
        except Unfit as unfit:
            raise _invalid(f"webhook: {unfit}") from None


def _check_size(payload: str, limits: PayloadLimits) -> None:
    size_bytes = len(payload.encode("utf-8", "surrogatepass"))
    if size_bytes > limits.max_bytes:
        said = f"payload: found {size_bytes} bytes, wanted at most {limits.max_bytes}"
        raise RequestRefused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{said} ([limits] max_payload_bytes)"
        )


def _kind(catalog: Catalog, name: object) -> WorkKind:
    if not isinstance(name, str):
        found = "nothing" if name is None else type(name).__name__
        raise _invalid(f"kind: found {found}, wanted the name of a kind")
    try:
        return catalog.known(name)
    except UnknownKind as error:
        hint = f": did you mean {error.guess}?" if error.guess else "; `musterd kinds` lists them"
        raise _invalid(f"kind: {error}{hint}") from None


def _moment(name: str, value: object) -> datetime:
    if not isinstance(value, str):
        raise _invalid(f"{name}: wanted an RFC 3339 time, as {EXAMPLE} is")
    try:
        return moment_of(value)
    except ValueError as error:
        raise _invalid(f"{name}: {error}") from None


def _check_fields(given: Iterable[str]) -> None:
    for name in given:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS) or f"known: {', '.join(FIELDS)}"
            raise _invalid(f"unknown field {name!r}: {hint}")


def _invalid(detail: str) -> RequestRefused:
    return RequestRefused(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
