"""`musterd.testing`, as users' tests use it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from musterd import BudgetExceeded, JobContext, Retry
from musterd.store.errors import InputRefused
from musterd.store.jobs import NewJob
from musterd.testing import InPhase, run_due, run_handler


def greet(job: JobContext) -> str:
    job.progress(50, "half")
    job.log("greeting")
    job.spend(tokens=3)
    return f"hello {job.payload['name']}, {job.attempt}"


def test_a_handler_is_run_once() -> None:
    done = run_handler(greet, {"name": "you"}, attempt=2, budgets={"tokens": 5})
    assert (done.outcome, done.result, done.error) == ("success", "hello you, 2", None)
    assert (list(done.progress), done.spent, done.log) == (
        [(50.0, "half")],
        {"tokens": 3},
        "greeting\n",
    )


def test_its_errors_are_told() -> None:
    done = run_handler(greet, {"name": "you"}, budgets={"tokens": 2})
    assert done.error == {
        "type": "budget_exceeded", "message": "spent 3 of tokens, the budget is 2",
    }  # fmt: skip
    failed = run_handler(greet, {})
    assert failed.error == {"type": "KeyError", "message": "'name'"}
    assert "in greet" in failed.log


def test_async_handlers_run_on_the_loop_that_is_asked_for() -> None:
    async def on_trio(_job: JobContext) -> float:
        await trio.lowlevel.checkpoint()
        return 1.0

    async def on_asyncio(_job: JobContext) -> None:  # noqa: ASYNC124 - as handlers are written
        raise Retry(in_seconds=4, message="later")

    assert run_handler(on_trio, loop="trio").result == 1.0
    retried = run_handler(on_asyncio)
    assert (retried.outcome, retried.delay_seconds) == ("retry", 4.0)


def test_a_payload_that_could_not_be_enqueued_is_refused() -> None:
    with pytest.raises(InputRefused, match="payload"):
        run_handler(greet, {"name": "a\0b"})


def test_all_that_is_due_is_run(tmp_path: Path) -> None:
    (tmp_path / "due_handlers.py").write_text(
        "async def double(job): return job.payload * 2\ndef fail(job): raise TimeoutError('slow')\n"
    )
    (tmp_path / "kinds.toml").write_text(
        '[kinds.double]\npython = "due_handlers:double"\n'
        '[kinds.fail]\npython = "due_handlers:fail"\nretry_on = ["OSError"]\n'
    )
    jobs = [NewJob("double", "21"), NewJob("fail"), NewJob("noop")]
    double, fail, noop = run_due(tmp_path / "kinds.toml", jobs)
    assert (double.state, double.result) == ("succeeded", 42)
    assert (fail.state, fail.attempt) == ("queued", 1)
    assert fail.error == {"type": "TimeoutError", "message": "slow"}
    assert noop.state == "succeeded"


def test_budget_exceeded_can_be_caught() -> None:
    def careful(job: JobContext) -> str:
        try:
            job.spend(tokens=9)
        except BudgetExceeded as error:
            return error.name
        return "not reached"

    assert run_handler(careful, budgets={"tokens": 1}).result == "tokens"


def test_a_handler_is_run_as_a_phase() -> None:
    def process(job: JobContext) -> object:
        return [job.phase, job.phase_result("download"), job.phase_result("check")]

    phase = InPhase("process", {"download": {"path": "a"}, "check": None})
    assert run_handler(process, phase=phase).result == ["process", {"path": "a"}, None]
    failed = run_handler(lambda job: job.phase_result("upload"), phase=phase)
    assert failed.error is not None
    assert failed.error["type"] == "LookupError"
    assert failed.error["message"].endswith("its phases are download, check, process")


def test_a_handler_sees_all_that_earlier_phases_returned() -> None:
    phase = InPhase("process", {"download": {"path": "a"}, "check": None})
    seen = run_handler(lambda job: job.phase_results(), phase=phase)
    assert seen.result == {"download": {"path": "a"}, "check": None}
    assert run_handler(lambda job: job.phase_results()).result == {}


def test_a_handler_is_run_for_a_slot() -> None:
    slot = datetime(2030, 1, 2, tzinfo=UTC)
    seen = run_handler(lambda job: [job.schedule, str(job.scheduled_for)], scheduled_for=slot)
    assert seen.result == ["test", str(slot)]
    assert run_handler(lambda job: job.scheduled_for).result is None


def test_jobs_with_phases_are_run(tmp_path: Path) -> None:
    (tmp_path / "due_phases.py").write_text(
        "def first(job): return job.payload + 1\n"
        "async def second(job): return job.phase_result('first') * 10\n"
    )
    phases = "".join(
        f'[[kinds.sum.phases]]\nname = "{name}"\npython = "due_phases:{name}"\n'
        for name in ("first", "second")
    )
    (tmp_path / "kinds.toml").write_text(phases)
    (done,) = run_due(tmp_path / "kinds.toml", [NewJob("sum", "4")])
    assert (done.state, done.result) == ("succeeded", 50)
