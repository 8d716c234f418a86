"""Verbs go on where settings have faults that they do not need, and say so."""

from pathlib import Path

import pytest

from musterd.config.faults import ConfigError, Fault, concerns
from musterd.config.load import stray_variables
from musterd.console.command import STORE_SECTIONS, CommandLine

CATALOG = "[kinds.a]\nduration = 1\n"


def command_line(tmp_path: Path, text: str) -> CommandLine:
    file = tmp_path / "musterd.toml"
    file.write_text(text, "utf-8")
    return CommandLine().proposing(file)


@pytest.mark.parametrize(
    "text",
    [
        "[workers]\nmax_cuont = 3\n",
        "[workers]\ndefault_count = 9\nmax_count = 3\n",
        "[scailng]\npolicy = 'depth'\n",
        "[schedules.a]\nkind = 'report'\n",
        "[http]\nlisten = 7\n",
    ],
)
def test_a_fault_elsewhere_is_warned_of_and_the_rest_counts(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = command_line(tmp_path, f"{text}[store]\nurl = 'sqlite:////tmp/here.db'\n")
    assert cli.settings().store.url == "sqlite:////tmp/here.db"
    said = capsys.readouterr().err
    assert said.startswith("musterd: the configuration has a fault that this verb can do without:")
    assert f"{tmp_path}/musterd.toml:" in said


@pytest.mark.parametrize(
    "text",
    [
        "[store]\nurl = 7\n",
        "[store]\nulr = 'sqlite:////tmp/here.db'\n",
        "[stroe]\nurl = 'sqlite:////tmp/here.db'\n",
        "[database]\nurl = 'sqlite:////tmp/here.db'\n",
        "[workers]\nschema = 'other'\n",
        "[tenants.acme]\nulr = 'sqlite:////tmp/here.db'\n",
        "[tenatns.acme]\nurl = 'sqlite:////tmp/here.db'\n",
        "store = ",
    ],
)
def test_a_fault_that_may_lead_to_another_store_ends_the_verb(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        command_line(tmp_path, text).settings()


def test_what_a_verb_needs_beside_the_store_it_says(tmp_path: Path) -> None:
    cli = command_line(tmp_path, "[http]\nlisten = 7\n")
    with pytest.raises(ConfigError):
        cli.settings_for((*STORE_SECTIONS, "http"))


def test_a_guess_counts_only_as_a_whole_word() -> None:
    assert concerns(
        Fault("f", 1, "workers.url", "unknown key", hint="did you mean store.url?"), ["store"]
    )
    assert not concerns(Fault("f", 1, "log.a", "unknown", hint="did you mean restore?"), ["store"])


def test_more_faults_than_a_few_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = command_line(tmp_path, "[log]\na = 1\nb = 1\nc = 1\nd = 1\ne = 1\n")
    cli.settings()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 5
    assert said[-1] == "  and 2 more: `musterd config check`"


def test_a_variable_with_one_underscore_is_warned_of_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTERD_STORE_URL_FILE", "x")
    for name in ("TEST_ANYTHING", "WORKERS", "WORKERS_OF_MINE", "ATTEMPT", "SCHEDULED_FOR"):
        monkeypatch.setenv(f"MUSTERD_{name}", "x")
    cli = command_line(tmp_path, "")
    cli.load()
    cli.load()
    wanted = "MUSTERD_STORE_URL_FILE sets nothing - did you mean MUSTERD_STORE__URL_FILE?"
    assert capsys.readouterr().err == f"musterd: warning: {wanted}\n"


@pytest.mark.parametrize(
    ("found", "meant"),
    [
        ("WORKERS_MAX", "WORKERS__MAX_COUNT"),
        ("WORKERS_MAXCOUNT", "WORKERS__MAX_COUNT"),
        ("LOG_LEVL", "LOG__LEVEL"),
        ("HTTP_LISTEN", "HTTP__LISTEN"),
    ],
)
def test_a_variable_that_is_nearly_a_key_names_it(found: str, meant: str) -> None:
    names = {f"MUSTERD_{found}": "x"}
    assert list(stray_variables(names)) == [(f"MUSTERD_{found}", f"MUSTERD_{meant}")]


def test_a_catalog_with_faults_is_empty_for_a_verb_that_only_shows_more_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kinds.toml").write_text(CATALOG, "utf-8")
    cli = command_line(tmp_path, "[catalog]\npaths = ['kinds.toml']\n")
    assert len(cli.catalog_if_sound(cli.settings())) == 0
    assert "kinds.a.duration: unknown key" in capsys.readouterr().err
