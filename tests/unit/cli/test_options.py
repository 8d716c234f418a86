"""How a command line is read: shared options on both sides, times, guesses, exit codes."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
import tomli
from click.testing import CliRunner, Result

from musterd.config.faults import ConfigError, Fault
from musterd.console.command import VERBS, musterd, read_delay, read_moment
from musterd.console.output import Exit, complaint_about
from musterd.manager.node.process import StartError
from musterd.store.errors import InputRefused, StoreMisconfigured, StoreUnavailable

ROOT = Path(__file__).parents[3]
CONTEXT = click.Context(click.Command("x"))
OPTION = click.Option(["--in"])


def call(*arguments: str) -> Result:
    return CliRunner().invoke(musterd, arguments)


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_verbs_says_what_their_own_help_begins_with(verb: str) -> None:
    _, words = VERBS[verb]
    assert musterd.commands[verb].get_short_help_str(limit=200) == words


@pytest.mark.parametrize(
    "arguments",
    [
        ("--json", "--set", "workers.max_count=5", "config", "show"),
        ("config", "--json", "show", "--set", "workers.max_count=5"),
        ("config", "--set", "workers.max_count=5", "show", "--json"),
        ("--set", "workers.max_count=9", "config", "show", "--json", "--set=workers.max_count=5"),
    ],
)
def test_shared_options_stand_before_or_after_the_verb(arguments: tuple[str, ...]) -> None:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["workers"]["max_count"] == 5


def test_a_config_file_is_read_on_either_side(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text("[workers]\nmax_count = 3\n")
    before = call("--config", str(file), "config", "show", "--origin")
    after = call("config", "show", "--origin", "--config", str(file))
    assert before.stdout == after.stdout
    assert f"max_count = 3  # {file}:2" in before.stdout


def test_every_fault_is_named_at_once_on_stderr_without_a_traceback() -> None:
    result = call("config", "check", "--set", "workers.max_cuont=3", "--set", "log.level=loud")
    assert (result.exit_code, result.stdout) == (78, "")
    assert "did you mean max_count?" in result.stderr
    assert "log.level" in result.stderr
    assert "Traceback" not in result.output


def test_the_faults_of_configuration_and_catalog_are_named_together(tmp_path: Path) -> None:
    catalog = tmp_path / "kinds.toml"
    catalog.write_text("[kinds.mine]\nduration_ms = 'long'\n")
    missing = tmp_path / "none.toml"
    paths = f'catalog.paths=["{catalog}", "{missing}"]'
    for verb in (("config", "check"), ("run",)):
        result = call(*verb, "--set", paths, "--set", "workers.max_count=0")
        assert result.exit_code == 78
        for said in ("workers.max_count", f"{catalog}:2", str(missing)):
            assert result.stderr.count(said) == 1, result.stderr


def test_a_misspelt_verb_and_option_are_guessed() -> None:
    verb, option = call("statsu"), call("enqueue", "noop", "--paylod", "1")
    assert (verb.exit_code, option.exit_code) == (2, 2)
    assert "'status'" in verb.stderr
    assert "--payload" in option.stderr


def test_a_misspelt_kind_is_guessed() -> None:
    result = call("enqueue", "reprot")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "did you mean report?" in result.stderr


def test_kinds_say_where_they_come_from(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[kinds.mine]\nduration_ms = [10, 20]\n")
    result = call("kinds", "--set", f'catalog.paths=["{file}"]')
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert lines["mine"].endswith(f"{file}:1")
    assert "success after 10 ms to 20 ms" in lines["mine"]
    assert lines["report"].endswith("shipped")


def test_kinds_are_one_object_a_line() -> None:
    found = [json.loads(line) for line in call("kinds", "--json").stdout.splitlines()]
    flaky = next(kind for kind in found if kind["name"] == "flaky")
    assert (flaky["behaviour"]["fail_first"], flaky["max_attempts"]) == (2, 4)


def test_a_kind_shows_its_phases() -> None:
    lines = {line.split()[0]: line for line in call("kinds").stdout.splitlines()}
    assert "phases download, process, upload" in lines["video"]
    found = [json.loads(line) for line in call("kinds", "--json").stdout.splitlines()]
    video = next(kind for kind in found if kind["name"] == "video")
    first = video["behaviour"]["phases"][0]
    assert (first["name"], first["input"], first["behaviour"]["duration_ms_max"]) == (
        *("download", "payload", 300),
    )
    assert "broken" not in first
    checked = [json.loads(line) for line in call("kinds", "--check", "--json").stdout.splitlines()]
    video = next(kind for kind in checked if kind["name"] == "video")
    assert [phase["broken"] for phase in video["behaviour"]["phases"]] == [None] * 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--in", "soon"),
        ("--in", "5"),
        ("--in", "-5s"),
        ("--in", "99999999d"),
        ("--at", "tomorrow"),
        ("--at", "2030-01-01T09:00:00"),
        ("--at", "2030-01-01"),
        ("--in", "5s", "--at", "2030-01-01T09:00:00Z"),
        ("--priority", "40000"),
        ("--count", "0"),
        ("--max-attempts", "0"),
        ("--payload", "{"),
        ("--payload", "NaN"),
        ("--payload", '"\\u0000"'),
        ("--payload", "@/no/such/file"),
        ("--payload", "[" * 100 + "]" * 100),
    ],
)
def test_what_no_job_could_be_is_a_usage_error(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    result = call("enqueue", "noop", *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert list(tmp_path.iterdir()) == []  # refused before the store was touched


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("5s", 5), ("1.5m", 90), ("2h", 7200), ("1d", 86400), (" 3s ", 3)],
)
def test_delays(text: str, seconds: float) -> None:
    assert read_delay(CONTEXT, OPTION, text) == seconds


def test_moments_carry_their_zone() -> None:
    nine = datetime(2030, 1, 1, 9, tzinfo=UTC)
    assert read_moment(CONTEXT, OPTION, "2030-01-01T09:00:00Z") == nine
    assert read_moment(CONTEXT, OPTION, "2030-01-01T11:00:00+02:00") == nine


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError([Fault("x.toml", 1, "a.b", "unknown key")]), Exit.CONFIGURATION),
        (StoreMisconfigured("wrong password"), Exit.CONFIGURATION),
        (StartError("port taken"), Exit.CONFIGURATION),
        (StoreUnavailable("refused", "unreachable"), Exit.UNAVAILABLE),
        (InputRefused("too deep"), Exit.USAGE),
        (ExceptionGroup("", [ExceptionGroup("", [StartError("taken")])]), Exit.CONFIGURATION),
    ],
)
def test_each_known_error_has_its_code(error: Exception, code: Exit) -> None:
    complaint = complaint_about(error)
    assert complaint is not None
    assert complaint.exit_code == code


def test_a_fault_of_the_program_is_not_dressed_up() -> None:
    assert complaint_about(ZeroDivisionError()) is None
    several = ExceptionGroup("", [StartError("a"), StartError("b")])
    assert complaint_about(several) is None


def test_the_version_is_the_packages() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert call("--version").stdout == f"musterd {project['version']}\n"
    assert json.loads(call("version", "--json").stdout)["musterd"] == project["version"]
