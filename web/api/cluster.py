"""The nodes of a store, and who of them does which duty: what all nodes know, from the store."""

from __future__ import annotations

from starlette.responses import Response

from musterd.store.disagreement import warnings
from musterd.store.duties import duty_object
from musterd.store.nodes import node_object
from musterd.web.api.operation import Call
from musterd.web.server.answers import json_answer, written

KIND_CHARACTERS = 150
NODE_CHARACTERS = 500


async def nodes(call: Call) -> Response:
    found = await call.door.engine.nodes()

    def write() -> Response:
        shown = [node_object(node) for node in found]
        return json_answer({"nodes": shown, "warnings": warnings(found)})

    size = sum(NODE_CHARACTERS + KIND_CHARACTERS * len(node.named) for node in found)
    return await written(call.site, size, write)


async def duties(call: Call) -> Response:
    found = await call.door.engine.duties.duties()
    return json_answer({"duties": [duty_object(one, call.door.name) for one in found]})
