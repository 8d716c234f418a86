"""Command kinds: what a program is given, what becomes of its output, how its end is judged."""

import json
import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from musterd.catalog.kinds import Command
from musterd.catalog.tables import RlimitTable
from musterd.workers.joblog import LogBounds
from musterd.workers.outcome import Note, Outcome
from musterd.workers.runners.command import RLIMITS, CommandRunner, said_by
from musterd.workers.runners.results import AnswerLimits
from tests.support.assignments import TOKEN, Given, given

LIMITS = AnswerLimits(result_bytes_max=65_536, depth_max=64)
VARIABLES = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


def command(*argv: str, **values: Any) -> Command:
    defaults: dict[str, Any] = {
        "cwd": None,
        "umask": 0o077,
        "environment": (),
        "rlimits": {},
        "retry_on_exit": (),
    }
    return Command(argv=argv, **{**defaults, **values})


def shell(script: str, payload: Any = None, **values: Any) -> Given:
    """`script` for sh; keys of the command and of its kind may be mixed."""
    fields = {"cwd", "umask", "environment", "rlimits", "retry_on_exit"}
    fields |= {"snooze_on_exit", "snooze_seconds"}
    own = {name: value for name, value in values.items() if name in fields}
    of_kind = {name: value for name, value in values.items() if name not in fields}
    return given(command("sh", "-c", script, **own), payload, **of_kind)


async def outcome_of(
    job: Given, limits: AnswerLimits = LIMITS, variables: Mapping[str, str] = VARIABLES
) -> Outcome:
    runner = CommandRunner(limits, variables)
    with trio.fail_after(30):
        outcome = await runner.run(job.assignment)
    await runner.close()
    return outcome


async def test_it_goes_before_the_daemon_where_memory_runs_out() -> None:
    outcome = await outcome_of(shell("cat /proc/self/oom_score_adj"))
    assert outcome.result == "1000"


class TestPayloadAndResult:
    async def test_the_payload_arrives_on_stdin_as_json(self) -> None:
        payload = {"text": "grüße\n", "list": [1, 2.5, None]}
        outcome = await outcome_of(shell("cat", payload))
        assert outcome.ended == "success"
        assert json.loads(outcome.result or "") == payload

    @pytest.mark.parametrize("script", ["exit 0", "exec 0<&-; sleep 0.05", "head -c 3 >/dev/null"])
    async def test_a_large_payload_need_not_be_read(self, script: str) -> None:
        outcome = await outcome_of(shell(script, "x" * 1_000_000))
        assert outcome == Outcome("success")

    @pytest.mark.parametrize(
        ("printed", "result"),
        [
            ('{"a": 1}\\n', '{"a": 1}'),
            ("  17 ", "17"),
            ("null", "null"),
            ("", None),
            ("\\n", None),
            ("two words\\n", '"two words"'),
            ("NaN", '"NaN"'),
            ("{broken", '"{broken"'),
            ("gr\\303\\274\\303\\237e", '"grüße"'),
        ],
    )
    async def test_what_is_json_stays_json_and_the_rest_is_a_string(
        self, printed: str, result: str | None
    ) -> None:
        outcome = await outcome_of(shell(f"printf '{printed}'"))
        assert (outcome.ended, outcome.result) == ("success", result)

    @pytest.mark.parametrize(
        ("printed", "found"),
        [
            ("\\377\\376", "stdout is not UTF-8: byte 0 is 0xff"),
            ("a\\000b", "NUL"),
            ('"\\\\ud800"', "surrogate"),
            ("1e999", "1e999"),
            ("[" * 65 + "]" * 65, "nesting deeper than 64"),
        ],
    )
    async def test_what_no_store_can_keep_is_an_invalid_result(
        self, printed: str, found: str
    ) -> None:
        outcome = await outcome_of(shell(f"printf '{printed}'", retryable=True))
        assert (outcome.ended, outcome.error_type) == ("failure", "result_invalid")
        assert found in (outcome.message or "")
        assert not outcome.retryable

    async def test_a_result_of_just_the_limit_is_kept(self) -> None:
        limits = AnswerLimits(10, 64)
        assert (await outcome_of(shell("printf 12345678"), limits)).result == "12345678"
        outcome = await outcome_of(shell("printf 12345678901"), limits)
        assert outcome.error_type == "result_invalid"
        assert "max_result_bytes" in (outcome.message or "")

    async def test_a_flood_is_ended_at_once(self) -> None:
        outcome = await outcome_of(shell("trap '' TERM; while :; do echo yes; done"))
        assert outcome.error_type == "result_invalid"


class TestEnds:
    @pytest.mark.parametrize(
        ("script", "ended", "error_type", "message"),
        [
            ("exit 3", "failure", "exit", "exited with status 3"),
            ("echo why >&2; exit 3", "failure", "exit", "exited with status 3: why"),
            ("exit 75", "retry", "exit", "exited with status 75"),
            ("exit 9", "retry", "exit", "exited with status 9"),
            ("kill -SEGV $$", "failure", "signal", "killed by signal 11 (SIGSEGV)"),
            ("kill -40 $$", "failure", "signal", "killed by signal 40 (unnamed)"),
        ],
    )
    async def test_each_end_has_its_outcome(
        self, script: str, ended: str, error_type: str, message: str
    ) -> None:
        outcome = await outcome_of(shell(script, retry_on_exit=(8, 9)))
        assert (outcome.ended, outcome.error_type) == (ended, error_type)
        assert outcome.message == message
        assert not outcome.retryable

    async def test_a_program_may_put_its_job_off(self) -> None:
        given = shell("exit 75", snooze_on_exit=(75, 9), snooze_seconds=90.0, retry_on_exit=(9,))
        outcome = await outcome_of(given)
        assert (outcome.ended, outcome.delay_seconds) == ("snooze", 90.0)
        assert outcome.message == "exited with status 75"
        given = shell("exit 9", snooze_on_exit=(75, 9), retry_on_exit=(9,))
        assert (await outcome_of(given)).ended == "snooze"

    async def test_a_retryable_kind_retries_any_failure(self) -> None:
        assert (await outcome_of(shell("exit 1", retryable=True))).retryable
        assert (await outcome_of(shell("kill -9 $$", retryable=True))).retryable

    async def test_a_program_that_is_missing_fails_with_its_name(self) -> None:
        outcome = await outcome_of(given(command("no-such-program")))
        said = "musterd: cannot run 'no-such-program': No such file or directory"
        assert outcome.message == f"exited with status 127: {said}"

    async def test_a_file_that_is_no_program_fails_with_its_name(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("no program")
        outcome = await outcome_of(given(command(str(tmp_path / "data"))))
        assert (outcome.message or "").startswith("exited with status 126: musterd: cannot run")

    async def test_too_few_file_descriptors_are_no_fault_of_the_job(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def none_left() -> tuple[int, int]:
            raise OSError(24, "Too many open files")

        monkeypatch.setattr(os, "pipe", none_left)
        outcome = await outcome_of(shell("exit 0"))
        assert (outcome.ended, outcome.delay_seconds) == ("snooze", 5.0)
        assert outcome.message == "its node has too little to start it: Too many open files"


class TestLog:
    async def test_stderr_and_prints_are_the_log(self) -> None:
        job = shell("echo one >&2; echo two >&2; sleep 0.05; echo 1")
        assert (await outcome_of(job)).result == "1"
        assert [(line.stream, line.level, line.text) for line in job.lines] == [
            ("stderr", "warning", "one"),
            ("stderr", "warning", "two"),
            ("stdout", "info", "1"),
        ]

    async def test_each_line_has_the_time_at_which_it_came(self) -> None:
        job = shell("echo first; sleep 0.3; echo second")
        await outcome_of(job)
        first, second = (datetime.fromisoformat(line.at or "") for line in job.lines)
        assert 0.2 < (second - first).total_seconds() < 10

    async def test_stdout_that_begins_as_an_object_is_the_result_alone(self) -> None:
        job = shell("""echo counted >&2; printf ' \n{"a":\n 1}\n'""")
        assert json.loads((await outcome_of(job)).result or "") == {"a": 1}
        assert job.said == "counted\n"

    async def test_a_line_may_say_its_level(self) -> None:
        job = shell("printf '<3>broken\n<7>detail\nplain\n<9>not one\n' >&2; echo '<4>hm'")
        await outcome_of(job)
        assert {(line.level, line.text) for line in job.lines} == {
            ("error", "broken"),
            ("debug", "detail"),
            ("warning", "plain"),
            ("warning", "<9>not one"),
            ("warning", "hm"),
        }

    async def test_of_a_long_log_the_end_is_kept(self) -> None:
        script = "i=0; while [ $i -lt 5000 ]; do echo line $i >&2; i=$((i+1)); done"
        job = given(command("sh", "-c", script), bounds=LogBounds(600, 1_000))
        await outcome_of(job)
        first, *lines = job.said.splitlines()
        assert first == f"{5000 - len(lines)} older lines were not kept"
        assert lines == [f"line {number}" for number in range(5000 - len(lines), 5000)]
        assert 10 <= len(lines) <= 12

    async def test_a_log_of_bytes_is_made_readable(self) -> None:
        job = shell("printf 'a\\000\\377' >&2")
        await outcome_of(job)
        assert job.said == "a\N{REPLACEMENT CHARACTER}\\xff\n"

    async def test_the_prints_of_a_python_program_come_at_once(self) -> None:
        script = "import os; print('printed'); os._exit(0)"  # no buffer is written out
        job = given(command(sys.executable, "-c", script))
        await outcome_of(job)
        assert job.said == "printed\n"


class TestProgress:
    async def test_lines_on_fd_3_are_progress(self) -> None:
        job = shell("echo 10 >&3; sleep 0.1; echo 50 half way >&3")
        assert (await outcome_of(job)).ended == "success"
        assert job.notes[-1] == Note(50.0, "half way")  # of several at once the last is told

    @pytest.mark.parametrize(
        ("line", "note"),
        [
            ("50", Note(50.0, None)),
            ("99.5%", Note(99.5, None)),
            ("50  half   way ", Note(50.0, "half way")),
            ('{"percent": 7}', Note(7.0, None)),
            ('{"percent": 7, "note": "so far"}', Note(7.0, "so far")),
            ('{"percent": 7, "note": 3}', None),
            ('{"percent": true}', None),
            ('{"note": "no percent"}', None),
            ("{broken", None),
            ('{"percent": 5, "note": "a\\u0000b\\ud800c"}', Note(5.0, "ab?c")),
            ("half", None),
            ("-1", None),
            ("100.5", None),
            ("nan", None),
        ],
    )
    def test_a_note_has_three_spellings(self, line: str, note: Note | None) -> None:
        assert said_by(line) == (note, None)

    async def test_junk_is_ignored_with_a_few_words_in_the_log(self) -> None:
        job = shell("for i in a 101 -1 nan '{\"percent\": true}' 12; do echo $i >&3; done")
        outcome = await outcome_of(job)
        assert outcome.ended == "success"
        assert job.notes[-1] == Note(12.0, None)
        assert [line.stream for line in job.lines] == ["musterd"] * 3
        assert "ignored on fd 3: 'a', wanted a percentage from 0 to 100" in job.said

    async def test_what_is_spent_counts_with_what_was_spent_before(self) -> None:
        say = """echo '{"spent": {"tokens": 3}, "percent": 5}' >&3"""
        job = shell(f"{say}; {say}", budgets={"tokens": 10})
        outcome = await outcome_of(job.with_claim(spent='{"tokens": 4}'))
        assert (outcome.ended, job.told.spent) == ("success", '{"tokens": 10}')
        assert job.notes[-1] == Note(5.0, None)

    async def test_a_program_that_spends_too_much_is_killed(self) -> None:
        job = shell("""echo '{"spent": {"tokens": 11}}' >&3; sleep 30""", budgets={"tokens": 10})
        outcome = await outcome_of(job)
        assert (outcome.ended, outcome.error_type) == ("failure", "budget_exceeded")
        assert outcome.message == "spent 11 of tokens, the budget is 10"
        assert job.told.spent == '{"tokens": 11}'

    @pytest.mark.parametrize("spent", ["3", '{"": 1}', '{"a": -1}', '{"a": true}', '{"a": 1e999}'])
    async def test_what_is_no_amount_is_ignored_with_a_word(self, spent: str) -> None:
        job = shell(f"""echo '{{"spent": {spent}}}' >&3""")
        outcome = await outcome_of(job)
        assert (outcome.ended, job.told.spent) == ("success", None)
        assert "ignored on fd 3" in job.said

    async def test_a_flood_of_names_hurts_nobody(self) -> None:
        """A hundred names count, as in a handler; with all, the loop would stand for minutes."""
        flood = "\n".join(f'{{"spent": {{"n{number}": 1}}}}' for number in range(20_000))
        job = shell("cat >&3", budgets={"n5": 10})
        outcome = await outcome_of(job.with_claim(payload=flood))
        assert outcome.ended == "success"
        assert len(json.loads(job.told.spent or "")) == 100
        assert "some of what was spent, wanted at most 100 names" in job.said
        assert job.said.count("\n") <= 3

    async def test_what_is_spent_in_many_lines_is_told_at_once(self) -> None:
        job = shell("cat >&3")
        await outcome_of(job.with_claim(payload='{"spent": {"calls": 1}}\n' * 2_000))
        assert job.told.spent == '{"calls": 2000}'
        assert len(job.told.sums) < 100

    async def test_a_line_without_an_end_counts_too(self) -> None:
        job = shell("printf '33%% nearly' >&3")
        await outcome_of(job)
        assert job.notes == [Note(33.0, "nearly")]

    async def test_a_flood_of_progress_hurts_nobody(self) -> None:
        job = shell("head -c 3000000 /dev/zero >&3; echo >&3; echo 5 >&3")
        outcome = await outcome_of(job)
        assert outcome.ended == "success"
        assert job.notes == [Note(5.0, None)]
        assert len(job.said) < 2_000

    async def test_fd_3_may_be_closed(self) -> None:
        assert (await outcome_of(shell("exec 3>&-; echo 1"))).result == "1"


class TestSurroundings:
    async def test_it_sees_the_allowed_variables_and_its_fence_alone(self) -> None:
        variables = {
            **VARIABLES,
            "LC_TIME": "C",
            "SHOP": "north",
            "PGPASSWORD": "canary",
            "MUSTERD_STORE__URL": "canary",
        }
        runner_limits = AnswerLimits(10_000, 64)
        script = "import json, os; print(json.dumps(dict(os.environ)))"
        python = given(
            command(sys.executable, "-I", "-c", script, environment=("SHOP", "ABSENT")), attempt=3
        )
        seen = json.loads((await outcome_of(python, runner_limits, variables)).result or "")
        seen.pop("LC_CTYPE", None)  # Python's own
        assert seen == {
            **VARIABLES,
            "PYTHONUNBUFFERED": "1",
            "LC_TIME": "C",
            "SHOP": "north",
            "MUSTERD_JOB_ID": "7",
            "MUSTERD_ATTEMPT": "3",
            "MUSTERD_CLAIM_TOKEN": str(TOKEN),
        }

    @pytest.mark.parametrize("lc_ctype", [None, "C", "de_DE.UTF-8"])
    async def test_the_launcher_adds_nothing_of_its_own(self, lc_ctype: str | None) -> None:
        variables = {**VARIABLES, **({"LC_CTYPE": lc_ctype} if lc_ctype else {})}
        outcome = await outcome_of(shell('printf %s "$LC_CTYPE"'), variables=variables)
        assert outcome.result == (json.dumps(lc_ctype) if lc_ctype else None)

    async def test_no_signal_is_ignored_and_none_blocked(self) -> None:
        job = given(command("grep", "-E", "^Sig(Ign|Blk):", "/proc/self/status"))
        lines = json.loads((await outcome_of(job)).result or "").splitlines()
        assert {int(line[7:], 16) & ~(3 << 31) for line in lines} == {0}  # two are libc's own

    async def test_it_has_four_files_and_no_more(self) -> None:
        job = given(command("ls", "/proc/self/fd"))
        result = json.loads((await outcome_of(job)).result or "")
        assert result.split() == ["0", "1", "2", "3", "4"]  # 4 is the folder that ls reads

    async def test_folder_and_umask_are_as_told(self, tmp_path: Path) -> None:
        job = shell("umask; pwd; touch new", cwd=tmp_path, umask=0o027)
        assert (await outcome_of(job)).result == json.dumps(f"0027\n{tmp_path}")
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640

    async def test_a_folder_that_is_missing_is_named(self, tmp_path: Path) -> None:
        outcome = await outcome_of(shell("exit 0", cwd=tmp_path / "gone"))
        assert (outcome.message or "").startswith("exited with status 126: musterd: cannot enter")

    async def test_limits_hold_from_the_first_instruction(self) -> None:
        limits = {"nofile": 32, "cpu_seconds": 5, "fsize_mb": 1, "core_mb": 0, "as_mb": 300}
        job = shell("ulimit -n; ulimit -t; ulimit -f; ulimit -c; ulimit -v", rlimits=limits)
        result = json.loads((await outcome_of(job)).result or "")
        assert result.split() == ["32", "5", "2048", "0", str(300 * 1024)]

    def test_the_catalog_knows_just_these_limits(self) -> None:
        assert {field.name for field in attrs.fields(RlimitTable)} == set(RLIMITS)

    async def test_beyond_a_limit_the_kernel_ends_it(self) -> None:
        job = shell("while :; do :; done", rlimits={"cpu_seconds": 1})
        outcome = await outcome_of(job)
        assert outcome.error_type == "signal"
        assert "SIGKILL" in (outcome.message or "") or "SIGXCPU" in (outcome.message or "")

    async def test_arguments_are_no_shell(self) -> None:
        job = given(command("printf", "%s|", "$HOME", "a b", "; exit 1", "*"))
        assert (await outcome_of(job)).result == json.dumps("$HOME|a b|; exit 1|*|")
