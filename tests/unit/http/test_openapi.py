"""The description is of the application itself: same routes, same names, same shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from uuid import uuid4

import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import ClaimRequest, Ends
from musterd.web.api.jobs import FIELDS
from musterd.web.api.openapi import COMPONENTS, document
from musterd.web.api.routes import OPERATIONS
from tests.support.web_scene import serving

DOCUMENT: dict[str, Any] = document(OPERATIONS, "1.2.3")
SHOWN = (
    *("/jobs", "/jobs/{id}", "/status", "/workers", "/scaling", "/schedules", "/targets/{target}"),
    *("/nodes", "/duties", "/config"),
)


def test_it_is_openapi_3_1_and_names_every_operation_once() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    described = [
        said["operationId"] for path in DOCUMENT["paths"].values() for said in path.values()
    ]
    assert sorted(described) == sorted(one.name for one in OPERATIONS)
    assert len(set(described)) == len(described)


def test_every_place_of_a_path_is_described() -> None:
    for one in OPERATIONS:
        assert {f"{{{name}}}" for name in one.places} == {
            part for part in one.path.split("/") if part.startswith("{")
        }


def test_every_reference_leads_somewhere() -> None:
    names = {text.rpartition("/")[2] for text in references(DOCUMENT)}
    assert names == set(COMPONENTS)


def test_every_option_of_a_job_has_its_shape() -> None:
    assert list(COMPONENTS["JobWanted"]["properties"]) == list(FIELDS)  # type: ignore[call-overload]


async def test_the_document_is_served() -> None:
    async with serving() as web:
        answer = await web.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["paths"] == DOCUMENT["paths"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_other_methods_are_told_the_right_ones(method: str) -> None:
    async with serving() as web:
        for path, said in DOCUMENT["paths"].items():
            if method.lower() in said:
                continue
            answer = await web.get(path.replace("{id}", "1"), method=method)
            wanted = {name.upper() for name in said} | {"HEAD" for name in said if name == "get"}
            assert answer.status == 405, path
            assert set(answer.headers["allow"].split(", ")) == wanted, path


async def test_answers_have_the_shapes_that_are_described() -> None:
    """Every name, no other, at every depth; the values themselves are tried by `make fuzz`."""
    async with serving() as web:
        for number in range(2):
            await web.engine.jobs.enqueue([NewJob("report", f"[{number}]")])
        request = ClaimRequest(uuid4(), "n1", (1,), 0, 60.0)
        await web.engine.leases.exchange(Ends(), request)
        for path in SHOWN:
            described = DOCUMENT["paths"][path]
            schema = described["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            found = (await web.get(path.format(id=1, target="t"))).json
            assert list(misfits(found, schema, path)) == []


def references(value: Any) -> Iterator[str]:
    for name, inner in items(value):
        if name == "$ref":
            yield inner
        yield from references(inner)


def items(value: Any) -> list[tuple[Any, Any]]:
    """What is in an object or a list; nothing for any other value."""
    found: Any = value
    if isinstance(found, dict):
        return list(cast("dict[str, Any]", found).items())
    return list(enumerate(cast("list[object]", found))) if isinstance(found, list) else []


def misfits(value: Any, schema: dict[str, Any], place: str) -> Iterator[str]:
    """Where the names of objects differ from those described."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        yield from [] if value is None else misfits(value, schema["anyOf"][0], place)
        return
    properties: dict[str, Any] = schema.get("properties", {})
    names = {name for name, _ in items(value) if properties}
    odd = (names - set(properties)) | (set(schema.get("required", ())) - names)
    if odd and properties and value is not None:
        yield f"{place}: {sorted(odd)}"
    for name, inner in items(value):
        yield from misfits(inner, properties.get(name, schema.get("items", {})), f"{place}.{name}")
