"""The OpenAPI 3.1 document, made from the table of routes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

from musterd.web.api.operation import JSON_TYPE, Operation, Param, Reply, Schema
from musterd.web.api.schemas import COMPONENTS, TEXT, ref
from musterd.web.server.answers import PROBLEM_TYPE

ABOUT = "The queue and the node of musterd. Every error is a problem (RFC 9457)."
TOKEN = {"type": "http", "scheme": "bearer", "description": "Needed if tokens are configured."}

# Refusals of every route, and of routes that need a token, a store or a query.
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
HEADERS = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate",),
    HTTPStatus.SERVICE_UNAVAILABLE: ("Retry-After",),
}


def document(operations: Sequence[Operation], version: str) -> dict[str, object]:
    """The whole document."""
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
    """Every problem that may come back, and what it means here."""
    behind = BEHIND_TOKEN if operation.scope else {}
    programs = FOR_PROGRAMS if operation.minds_query else {}
    return {**ANYBODY, **behind, **programs, **operation.refusals}


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
