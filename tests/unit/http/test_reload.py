"""POST /reload: what came of it, or why not now."""

import attrs
import pytest
import trio

from musterd.config.changes import Change, Changes, NamedChanges
from musterd.manager.reload.outcome import ReloadRefused, ReloadTaken
from musterd.web.api import node
from tests.support.web_scene import SETTINGS, serving

KEYS = (
    Change("workers.max_count", 8, 9, "at once"),
    Change("store.pool_size", 4, 5, "restart"),
)
TAKEN = ReloadTaken(
    7, Changes(SETTINGS, added=("acme",), keys=KEYS), NamedChanges(added=("new",), removed=("old",))
)


async def test_what_is_different_is_told() -> None:
    async with serving() as web:
        web.node.outcome = TAKEN
        answer = await web.post("/reload")
    assert answer.status == 200
    assert answer.json == {
        "node": "n1",
        "result": "applied",
        "generation": 7,
        "changed": [
            {"key": "workers.max_count", "from": 8, "to": 9, "applies": "at once"},
            {"key": "store.pool_size", "from": 4, "to": 5, "applies": "restart"},
        ],
        "restart": ["store.pool_size"],
        "tenants": {"added": ["acme"], "removed": [], "moved": []},
        "kinds": {"added": ["new"], "changed": [], "removed": ["old"]},
        "schedules": {"added": [], "changed": [], "removed": []},
    }


async def test_nothing_that_applies_is_unchanged() -> None:
    async with serving() as web:
        web.node.outcome = ReloadTaken(3, Changes(SETTINGS, keys=KEYS[1:]))
        answer = (await web.post("/reload")).json
    assert (answer["result"], answer["restart"]) == ("unchanged", ["store.pool_size"])


async def test_a_refusal_names_every_fault() -> None:
    async with serving() as web:
        web.node.outcome = ReloadRefused(
            4, ("a.toml:1: x: unknown key", "a.toml:2: y: unknown key")
        )
        answer = await web.post("/reload")
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json["faults"] == ["a.toml:1: x: unknown key", "a.toml:2: y: unknown key"]
    said = "the new configuration has 2 faults; generation 4 stays in use"
    assert answer.json["detail"] == said


@pytest.mark.parametrize("query", ["", "?wait=false"])
async def test_a_node_that_does_not_run_is_a_conflict(query: str) -> None:
    async with serving() as web:
        web.node.no_reload = "the node is draining: it does not reload"
        answer = await web.post(f"/reload{query}")
    assert (answer.status, answer.json["detail"]) == (409, web.node.no_reload)


async def test_who_does_not_wait_is_told_that_it_is_under_way() -> None:
    async with serving() as web:
        web.node.reload_seconds = 1000.0
        answer = await web.post("/reload?wait=false")
        assert web.node.reloaded == 1
    assert (answer.status, answer.json) == (202, {"node": "n1", "result": "started"})


async def test_who_waits_waits_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "RELOAD_SECONDS", node.RELOAD_MARGIN_SECONDS + 0.1)
    async with serving() as web:
        web.node.reload_seconds = 1000.0
        with trio.fail_after(10):
            answer = await web.post("/reload")
    assert (answer.status, answer.json["result"]) == (202, "started")


async def test_its_query_is_checked() -> None:
    async with serving() as web:
        answer = await web.post("/reload?wait=perhaps")
        assert web.node.reloaded == 0
    assert (answer.status, answer.json["detail"]) == (
        422, "wait: found 'perhaps', wanted true or false",
    )  # fmt: skip


async def test_an_answer_of_many_kinds_is_whole() -> None:
    names = tuple(f"kind-{number}" for number in range(10_000))
    async with serving() as web:
        web.node.outcome = attrs.evolve(TAKEN, kinds=NamedChanges(added=names))
        answer = await web.post("/reload")
    assert len(answer.json["kinds"]["added"]) == 10_000
