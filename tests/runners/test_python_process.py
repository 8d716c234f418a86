"""Handlers in child processes: what may happen to a child, and what never happens to others."""

import ast
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio

from musterd.workers.joblog import LogBounds
from musterd.workers.runners.process import PROGRAM
from tests.runners.rig import a_bench, python_kind, result_of, some_tools
from tests.support.children import has_gone, lines_in

FACTS = python_kind("facts")


async def test_a_child_serves_job_after_job() -> None:
    async with a_bench() as bench:
        first, second = [result_of(await bench.run(FACTS)) for _ in range(2)]
    assert first["pid"] == second["pid"] != os.getpid()
    assert (first["runs"], second["runs"]) == (1, 2)


async def test_a_child_is_replaced_after_its_jobs() -> None:
    async with a_bench(some_tools(max_jobs_per_child=2)) as bench:
        pids = [result_of(await bench.run(FACTS))["pid"] for _ in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


async def test_a_child_that_holds_much_memory_is_replaced() -> None:
    async with a_bench(some_tools(max_child_memory_bytes=60_000_000)) as bench:
        small = [result_of(await bench.run(FACTS))["pid"] for _ in range(2)]
        large = result_of(await bench.run(python_kind("holds_memory")))
        after = result_of(await bench.run(FACTS))["pid"]
    assert small[0] == small[1] == large != after


async def test_what_a_child_holds_after_each_job_is_noted_by_kind() -> None:
    held: list[tuple[str, int]] = []

    def note(kind: str, held_bytes: int) -> None:
        held.append((kind, held_bytes))

    tools = some_tools(held_memory=note)
    large = python_kind("holds_memory")
    async with a_bench(tools) as bench:
        await bench.run(FACTS)
        await bench.run(large)
    (first, small), (second, much) = held
    assert (first, second) == (FACTS.name, large.name)
    assert 1_000_000 < small < 60_000_000 < much


async def test_a_kind_with_other_folders_gets_another_child(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("import os\ndef pid(job): return os.getpid()\n")
    other = python_kind("elsewhere:pid", search_path=(tmp_path,))
    async with a_bench() as bench:
        first = result_of(await bench.run(FACTS))["pid"]
        assert result_of(await bench.run(other)) != first


@pytest.mark.parametrize(
    ("function", "how"),
    [("exits", "exit status 3"), ("segfaults", "killed by SIGSEGV"),
     ("killed", "killed by SIGKILL")],
)  # fmt: skip
async def test_a_crash_costs_its_own_job_one_attempt(function: str, how: str) -> None:
    async with a_bench() as bench:
        outcome = await bench.run(python_kind(function))
        assert (outcome.ended, outcome.error_type) == ("failure", "child_died")
        assert outcome.message == f"its child process has ended ({how})"
        assert not outcome.retryable
        assert result_of(await bench.run(FACTS))["runs"] == 1
        assert (await bench.run(python_kind(function, retryable=True))).retryable


async def test_a_child_that_ended_while_it_idled_costs_no_job_an_attempt() -> None:
    async with a_bench() as bench:
        pid = result_of(await bench.run(FACTS))["pid"]
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - ends at once, unreaped
        assert result_of(await bench.run(FACTS))["pid"] != pid


@pytest.mark.parametrize("character", ["x", "\\x01", "\\U0001f600"])
async def test_an_error_of_any_size_is_told_as_what_it_is(character: str, tmp_path: Path) -> None:
    text = f"def fails(job):\n    raise ValueError('{character}' * 6_000_000)\n"
    (tmp_path / "wordy.py").write_text(text)
    async with a_bench() as bench:
        outcome = await bench.run(python_kind("wordy:fails", search_path=(tmp_path,)))
        assert (outcome.ended, outcome.error_type) == ("failure", "ValueError")
        assert len(outcome.message or "") > 100_000


async def test_a_cancelled_job_is_stopped_with_all_it_has_started(tmp_path: Path) -> None:
    said = tmp_path / "pids"
    async with a_bench() as bench:
        assignment = bench.assignment(python_kind("hangs"), str(said))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.runner(assignment.kind).run, assignment)
            pids = [int(line) for line in await lines_in(said, 2)]
            started = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - started < 1.5
        with trio.fail_after(1):
            for pid in pids:
                await has_gone(pid)
        assert bench.said == "hanging\ncleaned up\n"
        assert result_of(await bench.run(FACTS))["runs"] == 1


async def test_what_a_stopped_job_reports_at_its_end_counts(tmp_path: Path) -> None:
    said = tmp_path / "begun"
    async with a_bench() as bench:
        kind = python_kind("reports_at_its_end", budgets={"tokens": 9})
        assignment = bench.assignment(kind, str(said))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.runner(kind).run, assignment)
            await lines_in(said, 1)
            nursery.cancel_scope.cancel()
        assert [json.loads(each) for each in bench.told.sums] == [{"tokens": 3}]
        assert [note.percent for note in bench.notes] == [40]


async def test_a_job_that_ignores_term_is_killed_after_its_grace(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    async with a_bench() as bench:
        assignment = bench.assignment(python_kind("ignores_term", grace_seconds=0.2), str(said))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.runner(assignment.kind).run, assignment)
            (pid,) = await lines_in(said, 1)
            started = trio.current_time()
            nursery.cancel_scope.cancel()
        assert 0.2 <= trio.current_time() - started < 2
        await has_gone(int(pid))


async def test_what_a_handler_prints_is_its_log_in_order() -> None:
    async with a_bench() as bench:
        assert (await bench.run(python_kind("prints"))).ended == "success"
        assert [(line.stream, line.level, line.text) for line in bench.lines] == [
            ("stdout", "info", "to stdout"),
            ("job", "info", "by log"),
            ("stderr", "warning", "to stderr"),
            ("stdout", "info", "to the descriptor"),
            ("stdout", "info", "by a program"),
        ]
        await bench.run(python_kind("noop"))
        assert bench.lines == []


async def test_what_programs_of_a_handler_write_to_stderr_is_known_as_that() -> None:
    async with a_bench() as bench:
        await bench.run(python_kind("talkative:starts_programs"))
        assert {(line.stream, line.text) for line in bench.lines} == {
            ("stderr", "by a program"),
            ("stderr", "to the descriptor"),
            ("stdout", "at once"),
        }


async def test_what_a_handler_logs_is_in_its_log_with_time_and_level() -> None:
    async with a_bench() as bench:
        await bench.run(python_kind("talkative:speaks"))
        assert [(line.stream, line.level, line.text) for line in bench.lines] == [
            ("stdout", "info", "printed first"),
            ("logging", "info", "shop.orders: order 7"),
            ("job", "error", "by job.log"),
            ("stderr", "warning", "to stderr"),
            ("logging", "critical", "shop.orders: failed"),
            ("logging", "critical", "in two lines"),
        ]
        moments = [datetime.fromisoformat(line.at or "") for line in bench.lines]
        assert moments == sorted(moments)
        age = datetime.now(UTC) - moments[0]
        assert 0 <= age.total_seconds() < 60
        await bench.run(python_kind("talkative:sets_up_its_own"))
        assert bench.said == "own: in its own way\n", "its own set-up counts"


async def test_a_flood_of_prints_is_cut_and_does_not_hold_the_handler_up() -> None:
    async with a_bench() as bench:
        bench.log_bounds = LogBounds(1_000, 100)
        with trio.fail_after(20):
            outcome = await bench.run(python_kind("floods"))
    assert outcome.ended == "success"
    missing, *_, cut, end = (line.text for line in bench.lines)
    assert missing == "398 older lines were not kept"
    assert cut.startswith("xxx")
    assert cut.endswith("x [9750 bytes were cut]")
    assert end == "end"


async def test_a_handler_without_stdout_still_ends_well() -> None:
    async with a_bench() as bench:
        assert result_of(await bench.run(python_kind("breaks_stdout"))) == "done"
        assert (await bench.run(python_kind("noop"))).ended == "success"


async def test_no_secret_of_ours_reaches_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUSTERD_STORE__URL", "PGPASSWORD", "NOTIFY_SOCKET", "LISTEN_FDS", "MY_DSN"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("MINE", "stays")
    async with a_bench() as bench:
        seen = result_of(await bench.run(python_kind("environment")))
    assert "canary" not in str(seen)
    assert seen["MINE"] == "stays"


async def test_a_childs_surroundings() -> None:
    async with a_bench() as bench:
        seen = result_of(await bench.run(python_kind("surroundings")))
    assert seen["umask"] == 0o077
    assert seen["leader"]
    assert seen["input"] == ""
    assert len(seen["files"]) <= 7  # 0 to 2, socket, log, memory; and the listing's own
    assert seen["names"] == ["musterd", "musterd.workers.context"]


async def test_a_users_modules_may_have_any_name(tmp_path: Path) -> None:
    names = ("config", "catalog", "workers", "store", "manager", "child", "context", "attrs")
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"NAME = 'the user\\'s {name}'\n")
    imports = "".join(f"import {name}\n" for name in names)
    source = f"{imports}def names(job):\n    return [{', '.join(f'{x}.NAME' for x in names)}]\n"
    (tmp_path / "mine.py").write_text(source)
    async with a_bench() as bench:
        seen = result_of(await bench.run(python_kind("mine:names", search_path=(tmp_path,))))
    assert seen == [f"the user's {name}" for name in names]


async def test_a_bare_interpreter_will_do(tmp_path: Path) -> None:
    """Not even attrs or Trio are there: `from musterd import …` works all the same."""
    source = (
        "from musterd import JobContext, Snooze\nimport sys\n"
        "def f(job: JobContext): raise Snooze(3)\n"
    )
    (tmp_path / "mine.py").write_text(source)
    bare = _bare_interpreter(tmp_path)
    async with a_bench(some_tools(python=str(bare))) as bench:
        outcome = await bench.run(python_kind("mine:f", search_path=(tmp_path,)))
    assert (outcome.ended, outcome.delay_seconds) == ("snooze", 3.0)


def _bare_interpreter(folder: Path) -> Path:
    """A virtual environment with nothing in it."""
    own = Path(sys.executable).resolve()
    bare = folder / "venv" / "bin" / "python"
    bare.parent.mkdir(parents=True)
    bare.symlink_to(own)
    (folder / "venv" / "pyvenv.cfg").write_text(f"home = {own.parent}\n")
    return bare


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/true", "/bin/cat"])
async def test_a_child_that_does_not_start_is_a_failure_to_be_retried(python: str) -> None:
    tools = some_tools(python=python, start_timeout_seconds=0.5)
    async with a_bench(tools) as bench:
        outcome = await bench.run(FACTS)
    assert (outcome.ended, outcome.error_type, outcome.retryable) == ("failure", "child_died", True)


async def test_a_child_dies_with_its_daemon(tmp_path: Path) -> None:
    """Also in the midst of a job, and though the daemon had no time for anything."""
    said, program = tmp_path / "pid", tmp_path / "daemon.py"
    program.write_text(
        "import sys, trio\n"
        "from tests.runners.rig import a_bench, python_kind\n"
        "async def main():\n"
        "    async with a_bench() as bench:\n"
        "        await bench.run(python_kind('ignores_term'), sys.argv[1])\n"
        "trio.run(main)\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, str(program), str(said)]
    daemon = await trio.lowlevel.open_process(
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    )
    (pid,) = await lines_in(said, 1)
    daemon.kill()
    await daemon.wait()
    with trio.fail_after(2):
        await has_gone(int(pid))


async def test_notes_of_progress_come_at_most_ten_times_a_second(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "def f(job):\n"
        "    end = time.monotonic() + 0.55\n"
        "    while time.monotonic() < end:\n"
        "        job.progress(50)\n"
        "    job.progress(60)\n"
        "    time.sleep(0.3)\n"  # the last one comes though nothing follows it
        "    return job.remaining()\n"
    )
    async with a_bench() as bench:
        await bench.run(python_kind("mine:f", search_path=(tmp_path,)))
        assert 2 <= len(bench.notes) <= 10
        assert bench.notes[-1].percent == 60


async def test_a_large_payload_and_a_large_result_pass() -> None:
    async with a_bench() as bench:
        text = "ü" * 100_000
        seen = await bench.run(python_kind("facts"), text)
        assert seen.error_type == "result_invalid"
        assert "200" in (seen.message or "")
        assert result_of(await bench.run(python_kind("noop"), text)) is None


async def test_eight_children_work_at_once() -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(_one_of_many)


async def _one_of_many() -> None:
    async with a_bench() as bench:
        for _ in range(20):
            assert (await bench.run(python_kind("noop"))).ended == "success"


def test_the_child_needs_the_standard_library_only() -> None:
    """And so do the two files that it loads by their paths."""
    folder = PROGRAM.parent
    for path in (PROGRAM, folder.parent / "context.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.partition(".")[0] for name in names}
            assert tops <= sys.stdlib_module_names, f"{path.name}:{getattr(node, 'lineno', 0)}"


async def test_term_ends_an_idle_child_at_once() -> None:
    async with a_bench() as bench:
        pid = result_of(await bench.run(FACTS))["pid"]
        os.kill(pid, signal.SIGTERM)
        await trio.sleep(0.05)
        outcome = await bench.run(FACTS)
        assert (outcome.error_type, outcome.ended) in (("child_died", "failure"), (None, "success"))
        assert result_of(await bench.run(FACTS))["pid"] != pid
