"""What holds for a handler in every isolation."""

from collections.abc import AsyncGenerator

import pytest
import trio
import trio.lowlevel

from musterd.catalog.kinds import Isolation
from musterd.workers.outcome import Note
from tests.runners.rig import Bench, a_bench, python_kind, result_of

ISOLATIONS: tuple[tuple[Isolation, str], ...] = (
    ("process", ""),
    ("process", "async_"),
    ("task", "async_"),
    ("thread", ""),
)


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with a_bench() as opened:
        yield opened


def in_each_isolation(*without: str) -> pytest.MarkDecorator:
    chosen = [pair for pair in ISOLATIONS if pair[0] not in without]
    names = [f"{isolation}-{prefix or 'def'}".rstrip("_") for isolation, prefix in chosen]
    return pytest.mark.parametrize(("isolation", "prefix"), chosen, ids=names)


@in_each_isolation()
async def test_a_handler_sees_its_job(bench: Bench, isolation: Isolation, prefix: str) -> None:
    kind = python_kind(f"{prefix}facts", isolation)
    seen = result_of(await bench.run(kind, {"a": [1, "ü"]}, attempt=3))
    assert seen["payload"] == {"a": [1, "ü"]}
    assert seen["attempt"] == 3
    assert seen["fence"] == [5, "00000000-0000-0000-0000-000000000007", 3]
    assert seen["phase"] is None
    assert seen["remaining"] == 7.5


@in_each_isolation()
async def test_what_a_handler_tells(bench: Bench, isolation: Isolation, prefix: str) -> None:
    kind = python_kind(f"{prefix}tells", isolation, budgets={"tokens": 10})
    outcome = await bench.run(kind, spent='{"tokens": 2, "calls": 1}')
    await trio.lowlevel.checkpoint()
    assert result_of(outcome) == "told"
    assert bench.said == "first\nlast\n"
    assert bench.told.spent == '{"tokens": 6, "calls": 1}'
    assert bench.notes[-1] == Note(100.0, None)


@in_each_isolation()
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ValueError", ("failure", "ValueError", "no good", None)),
        ("Declined", ("failure", "shop.Declined", "card", None)),
        ("Retry", ("retry", "Retry", "busy", 7.0)),
        ("Fatal", ("failure", "Fatal", "never", None)),
        ("Snooze", ("snooze", None, None, 9.0)),
        ("Cancel", ("cancel", None, "not wanted", None)),
        ("SystemExit", ("failure", "SystemExit", "3", None)),
        ("KeyboardInterrupt", ("failure", "KeyboardInterrupt", "", None)),
        ("group", ("failure", "ExceptionGroup", "two: ValueError: a, KeyError: 'b'", None)),
        ("group of one", ("retry", "Retry", "busy", 7.0)),
    ],
)
async def test_what_becomes_of_an_error(
    bench: Bench, isolation: Isolation, prefix: str, name: str, wanted: tuple[object, ...]
) -> None:
    outcome = await bench.run(python_kind(f"{prefix}raises", isolation), name)
    found = (outcome.ended, outcome.error_type, outcome.message, outcome.delay_seconds)
    assert found == wanted
    has_trace = outcome.ended == "failure" and name != "Fatal"
    assert ("Traceback" in bench.said) == has_trace
    assert "musterd/workers/runners" not in bench.said


@pytest.mark.parametrize("listed", ["Declined", "shop.Declined", "OSError"])
@in_each_isolation()
async def test_an_error_is_retried_by_any_of_its_names(
    bench: Bench, isolation: Isolation, prefix: str, listed: str
) -> None:
    kind = python_kind(f"{prefix}raises", isolation, retry_on=(listed,))
    assert (await bench.run(kind, "Declined")).retryable
    assert not (await bench.run(kind, "ValueError")).retryable


async def test_fatal_is_final_though_the_kind_is_retryable(bench: Bench) -> None:
    kind = python_kind("raises", retryable=True)
    assert not (await bench.run(kind, "Fatal")).retryable
    assert (await bench.run(kind, "ValueError")).retryable


@in_each_isolation()
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nan", "the result is no JSON"),
        ("object", "the result is no JSON"),
        ("deep", "result at "),
        ("large", "result: found 100002 bytes, wanted at most 65536"),
        ("nul", "result at $: found the character NUL"),
        ("surrogate", "result at $: found a lone surrogate"),
    ],
)
async def test_a_result_that_cannot_be_kept_is_a_failure(
    bench: Bench, isolation: Isolation, prefix: str, name: str, found: str
) -> None:
    kind = python_kind(f"{prefix}returns", isolation, retryable=True)
    outcome = await bench.run(kind, name)
    assert (outcome.ended, outcome.error_type) == ("failure", "result_invalid")
    assert not outcome.retryable
    assert (outcome.message or "").startswith(found)


@in_each_isolation()
async def test_results_arrive_as_they_were(bench: Bench, isolation: Isolation, prefix: str) -> None:
    kind = python_kind(f"{prefix}returns", isolation)
    assert result_of(await bench.run(kind, "text")) == "grün ☃"
    assert result_of(await bench.run(kind, "list")) == [1, 2.5, True, None, {"a": "b"}]
    assert (await bench.run(kind, "nothing")).result is None


@in_each_isolation()
async def test_who_spends_on_after_being_told_has_failed(
    bench: Bench, isolation: Isolation, prefix: str
) -> None:
    kind = python_kind(f"{prefix}spends_on", isolation, budgets={"tokens": 10}, retryable=True)
    outcome = await bench.run(kind)
    assert (outcome.error_type, outcome.retryable) == ("budget_exceeded", False)
    assert outcome.message == "spent 24 of tokens, the budget is 10"
    assert bench.told.spent == '{"tokens": 24}'


@in_each_isolation("task")
async def test_a_budget_ends_a_handler_or_lets_it_end(
    bench: Bench, isolation: Isolation, prefix: str
) -> None:
    if prefix:
        return
    budgets = {"tokens": 10}
    failed = await bench.run(python_kind("overspends", isolation, budgets=budgets))
    assert (failed.error_type, bench.told.spent) == ("budget_exceeded", '{"tokens": 16}')
    ended = await bench.run(python_kind("stops_when_over", isolation, budgets=budgets))
    assert result_of(ended) == "in time"


@in_each_isolation()
@pytest.mark.parametrize(
    ("function", "error_type"),
    [("nowhere:f", "ModuleNotFoundError"), ("shop:nothing", "AttributeError"),
     ("shop:STATE", "TypeError")],
)  # fmt: skip
async def test_a_function_that_is_not_there(
    bench: Bench, isolation: Isolation, prefix: str, function: str, error_type: str
) -> None:
    del prefix
    outcome = await bench.run(python_kind(function, isolation))
    assert (outcome.ended, outcome.error_type) == ("failure", error_type)


async def test_the_wrong_kind_of_function_is_told(bench: Bench) -> None:
    plain = await bench.run(python_kind("noop", "task"))
    assert plain.message == 'shop:noop is a plain def; isolation "task" wants an async def'
    a_sync = await bench.run(python_kind("async_noop", "thread"))
    assert a_sync.message == 'shop:async_noop is an async def; isolation "thread" wants a plain def'
