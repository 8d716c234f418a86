"""Nodes and duties over HTTP: as the store has them, whoever is asked."""

from uuid import uuid4

from musterd.store.duties import DutyReport, Holder
from tests.support.beats import live_node
from tests.support.web_scene import serving


async def test_the_nodes_and_what_they_do_not_agree_on() -> None:
    async with serving() as web:
        assert (await web.get("/nodes")).json == {"nodes": [], "warnings": []}
        north = await live_node(
            web.engine, config_generation=2, config_hash="a" * 12, load=0.126, busy=1
        )
        await live_node(web.engine, "south", config_hash="b" * 12)
        found = (await web.get("/nodes")).json
    first, second = found["nodes"]
    assert (first["id"], first["node"], first["busy"]) == (str(north.id), "north", 1)
    assert (first["config_generation"], first["config_hash"], first["load"]) == (
        2, "a" * 12, 0.13,
    )  # fmt: skip
    assert (second["config_generation"], second["load"]) == (None, None)
    assert found["warnings"] == [
        "the nodes have different configurations: aaaaaaaaaaaa on north; bbbbbbbbbbbb on south"
    ]


async def test_the_duties_and_who_has_them() -> None:
    holder = Holder("north", uuid4(), uuid4(), 10.0)
    async with serving() as web:
        assert (await web.get("/duties")).json == {"duties": []}
        await web.engine.duties.take(["events"], holder)
        report = DutyReport("events", holder.term, runs=3, items=7, errors=1, last_error="oh")
        await web.engine.duties.renew([report], 10.0)
        (duty,) = (await web.get("/duties?tenant=default")).json["duties"]
    assert (duty["duty"], duty["node"], duty["tenant"]) == ("events", "north", "default")
    assert (duty["runs"], duty["items"], duty["errors"], duty["last_error"]) == (3, 7, 1, "oh")


async def test_a_tenant_that_is_not_served_has_neither() -> None:
    async with serving() as web:
        for path in ("/nodes", "/duties"):
            assert (await web.get(f"{path}?tenant=nobody")).status == 404
