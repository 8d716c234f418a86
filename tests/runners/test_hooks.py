"""Functions that are told of something, called in a child that is kept for a while."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import trio

from musterd.workers import hooks
from musterd.workers.hooks import PythonHooks
from tests.runners.rig import USER, some_tools
from tests.support.children import has_gone


def event(file: Path) -> dict[str, Any]:
    data = {"id": 41, "file": str(file)}
    return {"type": "job.deleted", "timestamp": "2027-01-15T08:00:00Z", "data": data}


@pytest.fixture
async def called() -> AsyncGenerator[PythonHooks]:
    tools = some_tools()
    own = PythonHooks(lambda: tools, lambda: (USER,))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(own.run)
        yield own
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("function", ["write", "write_async"])
async def test_a_function_is_called_with_the_event(
    called: PythonHooks, tmp_path: Path, function: str
) -> None:
    said = event(tmp_path / "lines")
    for _ in range(2):
        assert await called.call(f"told:{function}", said) is None
    first, second = map(json.loads, (tmp_path / "lines").read_text().splitlines())
    assert (first["kind"], first["payload"], first["fence"]) == ("job.deleted", said, 41)
    assert first["pid"] == second["pid"]  # one child, kept


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("refuse", "told:refuse: Fatal: not this one"),
        ("break_down", "by nought"),
        ("die", "exit status 3"),
        ("gone", "has no attribute 'gone'"),
    ],
)
async def test_what_goes_wrong_is_said(
    called: PythonHooks, tmp_path: Path, function: str, why: str
) -> None:
    found = await called.call(f"told:{function}", event(tmp_path))
    assert found is not None
    assert why in found
    assert await called.call("told:write", event(tmp_path / "lines")) is None


async def test_a_call_that_takes_too_long_has_failed(
    called: PythonHooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "CALL_SECONDS", 1.0)
    assert await called.call("told:hang", event(tmp_path)) == "told:hang took longer than 1 s"
    assert await called.call("no_module_at_all:hang", event(tmp_path)) is not None


async def test_calls_at_once_take_turns(called: PythonHooks, tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(called.call, "told:write", event(tmp_path / "lines"))
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert len(lines) == 5
    assert len({line["pid"] for line in lines}) == 1


async def test_an_idle_child_is_not_kept(
    called: PythonHooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "IDLE_SECONDS", 0.2)
    await called.call("told:write", event(tmp_path / "lines"))
    (line,) = (tmp_path / "lines").read_text().splitlines()
    await has_gone(json.loads(line)["pid"])
    assert await called.call("told:write", event(tmp_path / "lines")) is None
