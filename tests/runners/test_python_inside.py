"""Handlers inside the daemon: on its loop, and in threads of their own."""

import io
import logging
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest
import trio

from musterd.catalog.kinds import Isolation
from musterd.manager.log import set_up_log
from musterd.workers.runners.inside import ABANDONED_MAX, ThreadRunner
from tests.runners.rig import USER, a_bench, python_kind, result_of, some_tools


@pytest.fixture
def root_level() -> Generator[int]:
    """As a daemon finds it; put back with its handlers."""
    root = logging.getLogger()
    level, handlers = root.level, [*root.handlers]
    root.setLevel(logging.WARNING)
    yield root.level
    root.setLevel(level)
    root.handlers[:] = handlers


async def test_a_cancel_passes_through_a_task(autojump_clock: object) -> None:
    del autojump_clock
    async with a_bench() as bench:
        assignment = bench.assignment(python_kind("async_waits", "task"))
        with trio.move_on_after(5) as scope:
            await bench.runner(assignment.kind).run(assignment)
        assert scope.cancelled_caught
        assert trio.current_time() >= 5
        assert bench.said == "waiting\n"


@pytest.mark.parametrize(("name", "isolation"), [("async_logs", "task"), ("logs", "thread")])
async def test_what_a_handler_logs_is_in_the_log_of_its_job(
    name: str, isolation: Isolation, root_level: int
) -> None:
    assert root_level == logging.WARNING
    async with a_bench() as bench:
        await bench.run(python_kind(f"talkative_inside:{name}", isolation))
        assert [(line.stream, line.level, line.text) for line in bench.lines] == [
            ("logging", "info", "shop.orders: in the daemon"),
            ("job", "info", "by job.log"),
            ("logging", "error", "shop.orders: in another task"),
        ][: len(bench.lines)]
        assert len(bench.lines) == (3 if isolation == "task" else 2)
        logging.getLogger("shop.orders").error("between two jobs")
        logging.getLogger("musterd").error("the daemon's own")
        assert len(bench.lines) == (3 if isolation == "task" else 2)


async def test_what_a_job_logs_is_not_in_the_log_of_the_daemon(root_level: int) -> None:
    del root_level
    written = io.StringIO()
    set_up_log("info", "logfmt", time.monotonic, written)
    async with a_bench() as bench:
        await bench.run(python_kind("talkative_inside:async_logs", "task"))
        logging.getLogger("library").info("of no interest")
        logging.getLogger("library").warning("of interest")
    (line,) = written.getvalue().splitlines()
    assert 'event="of interest" logger=library' in line


async def test_a_thread_that_does_not_end_is_left_and_counted(tmp_path: Path) -> None:
    done = tmp_path / "done"
    kind = python_kind("waits_for_file", "thread")
    async with a_bench() as bench:
        runner = bench.runner(kind)
        assert isinstance(runner, ThreadRunner)
        for number in range(1, ABANDONED_MAX + 1):
            with trio.move_on_after(0.02):
                await bench.run(kind, str(done))
            assert runner.abandoned_count == number
        refused = await bench.run(kind, str(done))
        assert (refused.ended, refused.error_type) == ("failure", "threads_exhausted")
        assert refused.retryable
        done.touch()
        with trio.fail_after(2):
            while runner.abandoned_count:  # noqa: ASYNC110 - a thread's end is no event
                await trio.sleep(0.005)
        assert result_of(await bench.run(kind, str(done))) == "seen"


async def test_one_thread_serves_job_after_job(tmp_path: Path) -> None:
    (tmp_path / "of_thread.py").write_text(
        "import threading\ndef name(job): return threading.get_ident()\n"
    )
    kind = python_kind("of_thread:name", "thread", search_path=(tmp_path,))
    async with a_bench() as bench:
        first, second = [result_of(await bench.run(kind)) for _ in range(2)]
    assert first == second != threading.get_ident()


@pytest.mark.parametrize("isolation", ["task", "thread"])
async def test_a_users_module_cannot_hide_ours(tmp_path: Path, isolation: str) -> None:
    """Nor the standard library's; any other name is free, also that of a folder of ours."""
    start = "async def" if isolation == "task" else "def"
    name = f"mine_in_{isolation}"
    for hidden in ("musterd", "colorsys"):
        (tmp_path / f"{hidden}.py").write_text("raise RuntimeError('the wrong one')\n")
    (tmp_path / f"workers_{isolation}.py").write_text("NAME = 'the user\\'s'\n")
    (tmp_path / f"{name}.py").write_text(
        f"import colorsys, musterd.config.settings, workers_{isolation}\n"
        f"{start} f(job): return workers_{isolation}.NAME\n"
    )
    kind = python_kind(f"{name}:f", isolation, search_path=(tmp_path, USER))  # type: ignore[arg-type] # one of the two
    async with a_bench(some_tools()) as bench:
        assert result_of(await bench.run(kind)) == "the user's"
