"""The file that `musterd config init` writes changes nothing until something is uncommented."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from musterd.config.load import SHIPPED_FILE, load
from musterd.config.settings import keys
from musterd.console.command import musterd
from musterd.console.verbs.config import commented_settings

KEY = re.compile(r"^# ([a-z_]+ = )", re.MULTILINE)
NO_FILE = Path("no-such-file.toml")


def written(tmp_path: Path) -> Path:
    file = tmp_path / "my settings.toml"
    done = CliRunner().invoke(musterd, ["config", "init", str(file)])
    assert (done.exit_code, done.stdout) == (
        0,
        f"{file} is written; change what you like, then `musterd run --config '{file}'`\n",
    )
    return file


def test_the_written_file_is_valid_and_changes_nothing(tmp_path: Path) -> None:
    assert load(written(tmp_path), {}, []).settings == load(None, {}, [], NO_FILE).settings


def test_every_key_is_there_with_its_default(tmp_path: Path) -> None:
    file = written(tmp_path)
    text, _, examples = file.read_text("utf-8").partition("# Tenants:")
    assert examples
    file.write_text(KEY.sub(r"\1", text), "utf-8")
    loaded = load(file, {}, [])
    assert loaded.settings == load(None, {}, [], NO_FILE).settings
    assert all(loaded.origins[key].startswith(str(file)) for key in keys())


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text("[workers]\n")
    done = CliRunner().invoke(musterd, ["config", "init", str(file)])
    assert done.exit_code == 2
    assert "is there already; nothing was written" in done.stderr
    assert file.read_text() == "[workers]\n"


@pytest.mark.parametrize("words", [["config", "init", "-"]])
def test_it_can_be_printed(words: list[str]) -> None:
    assert CliRunner().invoke(musterd, words).stdout == commented_settings(
        SHIPPED_FILE.read_text("utf-8")
    )
