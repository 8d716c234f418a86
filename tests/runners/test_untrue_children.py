"""Children that say what they should not: it costs the attempt in hand, and nobody else."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
import trio

from musterd.workers.outcome import Contained
from tests.runners.rig import Bench, a_bench, python_kind, result_of, some_tools

ECHO = python_kind("untrue:echo")


def listening() -> tuple[list[Contained], Any]:
    heard: list[Contained] = []
    return heard, some_tools(contained=heard.append)


async def echoes(bench: Bench) -> None:
    """Each of the next jobs gets its own result."""
    for number in range(3):
        claim = {"id": 100 + number, "token": uuid.UUID(int=8)}
        assert result_of(await bench.run(ECHO, number, **claim)) == number


@pytest.mark.parametrize("how", ["return", "exit", "raise"])
async def test_a_fork_that_comes_back_ends_nobodys_job(how: str) -> None:
    heard, tools = listening()
    async with a_bench(tools) as bench:
        outcome = await bench.run(python_kind("untrue:fork_that_comes_back"), how)
        assert result_of(outcome) == "parent"
        assert "forked by the handler, came back and was ended" in bench.said
        assert ("ValueError: in the fork" in bench.said) == (how == "raise")
        await echoes(bench)
    assert not heard


async def test_a_fork_that_comes_back_later_ends_nobodys_job() -> None:
    heard, tools = listening()
    async with a_bench(tools) as bench:
        assert result_of(await bench.run(python_kind("untrue:fork_that_lives_on"), 0.1)) == "parent"
        for _ in range(4):
            await echoes(bench)
            await trio.sleep(0.05)
    assert not heard


async def test_a_fork_ends_with_the_status_that_it_chose() -> None:
    async with a_bench() as bench:
        assert result_of(await bench.run(python_kind("untrue:status_of_a_fork"), 3)) == 3
        assert result_of(await bench.run(python_kind("untrue:status_of_a_fork"), 0)) == 0


async def test_a_fork_and_what_it_starts_have_no_way_to_the_daemon(tmp_path: Path) -> None:
    report = tmp_path / "report"
    async with a_bench() as bench:
        outcome = await bench.run(python_kind("untrue:sockets_of_a_fork"), str(report))
        assert result_of(outcome) == [1]
        assert bench.told.spent is None
        assert bench.said.count("does nothing in a forked process") == 1
        await echoes(bench)
        assert not bench.notes
    assert report.read_text().split() == ["0", "0", "0", "0"]


@pytest.mark.parametrize("function", ["says_for_the_last", "says_it_twice"])
async def test_a_foreign_message_costs_the_attempt_in_hand(function: str) -> None:
    heard, tools = listening()
    async with a_bench(tools) as bench:
        await bench.run(python_kind("untrue:keeps_its_claim"), id=1)
        outcome = await bench.run(python_kind(f"untrue:{function}"), id=2)
        assert (outcome.ended, outcome.error_type) == ("failure", "child_died")
        assert (outcome.message or "").startswith("its child process sent ")
        await echoes(bench)
    assert [(one.where, one.job_id) for one in heard] == [("child", 2)]


async def test_what_is_said_between_two_jobs_costs_no_job() -> None:
    heard, tools = listening()
    async with a_bench(tools) as bench:
        assert result_of(await bench.run(python_kind("untrue:says_it_late"), 0.05)) == "in time"
        await trio.sleep(0.3)
        await echoes(bench)
    assert [(one.where, one.job_id) for one in heard] == [("child", None)]


def note(**fields: Any) -> str:
    return json.dumps({"is": "note", **fields})


def ending(*fields: Any) -> str:
    return json.dumps({"is": "end", "memory_bytes": 1, "ending": fields})


MALFORMED = {
    "list": "[]", "null": "null", "number": "7", "text": '"end"', "no JSON": "{", "empty": "",
    "deep": "[" * 100_000, "deep inside": '{"is": ' + "[" * 900 + "]" * 900 + "}",
    "unknown": '{"is": "wish"}', "unhashable": '{"is": []}', "ready": '{"is": "ready"}',
    "digits": '{"is": "note", "percent": ' + "9" * 5_000 + "}",
    "percent text": note(percent="half"), "percent list": note(percent=[]),
    "percent bool": note(percent=True), "percent large": note(percent=10**400),
    "percent not finite": '{"is": "note", "percent": NaN}', "percent below": note(percent=-1),
    "note": note(percent=1, note=7), "note list": note(percent=1, note=["a"]),
    "spent list": note(spent=[1]), "spent text": note(spent={"a": "b"}),
    "spent infinite": '{"is": "note", "spent": {"a": Infinity}}',
    "spent NUL": note(spent={"a\0": 1}), "spent surrogate": note(spent={"\ud800": 1}),
    "spent below": note(spent={"a": -1}),
    "memory text": '{"is": "end", "memory_bytes": "x", "result": false}',
    "memory missing": '{"is": "end", "result": false}',
    "memory list": '{"is": "end", "memory_bytes": [], "result": false}',
    "ending short": ending("failure"), "ending text": ending(*"abcdefg"),
    "ending unknown": ending("pause", None, [], "", None, False, False),
    "message": ending("failure", None, [], 7, None, False, False),
    "message null": ending("cancel", None, [], None, None, False, False),
    "names": ending("failure", None, [7], "", None, False, False),
    "in_seconds": ending("snooze", None, [], "", "soon", False, False),
    "in_seconds none": ending("snooze", None, [], "", None, False, False),
    "in_seconds below": ending("retry", None, [], "", -1, False, False),
    "in_seconds huge": ending("snooze", None, [], "", 1e300, False, False),
    "final": ending("failure", None, [], "", None, "no", False),
    "phase": '{"is": "phase", "name": 7}', "phase of none": '{"is": "phase", "name": "a"}',
}  # fmt: skip


@pytest.mark.parametrize("what", MALFORMED)
async def test_a_malformed_message_costs_the_attempt_in_hand(what: str) -> None:
    heard, tools = listening()
    async with a_bench(tools) as bench:
        outcome = await bench.run(python_kind("untrue:says"), [MALFORMED[what]])
        assert (outcome.ended, outcome.error_type) == ("failure", "child_died"), outcome
        assert len(outcome.message or "") < 300
        await echoes(bench)
    assert [(one.where, one.job_id) for one in heard] == [("child", 5)]


@pytest.mark.parametrize("text", ["ff" * 36, "00" * 36, "00000001" + "00" * 40, "7f"])
async def test_bytes_that_are_no_message_cost_the_attempt_in_hand(text: str) -> None:
    async with a_bench() as bench:
        outcome = await bench.run(python_kind("untrue:says_bytes"), text)
        assert (outcome.ended, outcome.error_type) == ("failure", "child_died"), outcome
        await echoes(bench)


async def test_a_result_that_is_no_json_is_not_kept() -> None:
    async with a_bench() as bench:
        outcome = await bench.run(python_kind("untrue:bad_result"))
        assert (outcome.ended, outcome.error_type) == ("failure", "result_invalid"), outcome


async def test_a_note_is_kept_without_what_no_store_keeps() -> None:
    async with a_bench() as bench:
        said = [note(percent=1, note="a\0b\ud800c")]
        assert result_of(await bench.run(python_kind("untrue:says"), said)) == "said"
        assert [one.note for one in bench.notes] == ["a\N{REPLACEMENT CHARACTER}b?c"]
