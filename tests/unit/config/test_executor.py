"""Where modules and their interpreter are, and how children are kept."""

from pathlib import Path

import pytest

from musterd.config.faults import ConfigError
from musterd.config.load import load
from musterd.config.settings import Executor, Settings

ABSENT = Path("/nonexistent/musterd.toml")


def loaded(*sets: str, file: Path | None = None) -> Settings:
    return load(file, {}, sets, ABSENT).settings


def refusal(*sets: str, file: Path | None = None) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        loaded(*sets, file=file)
    return [str(fault) for fault in refused.value.faults]


def written(folder: Path, text: str, name: str = "musterd.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_the_folders_of_modules_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    file = written(tmp_path, "[catalog]\npython_path = ['lib', 'gone']\n")
    assert refusal(file=file) == [
        f"{file}:2: catalog.python_path: {tmp_path}/gone cannot be read: No such file or directory"
    ]
    found = loaded("catalog.python_path=['/tmp']", file=file).catalog.python_path
    assert found == (Path("/tmp"),)
    good = written(tmp_path, "[catalog]\npython_path = ['lib']\n", "good.toml")
    assert loaded(file=good).catalog.python_path == (tmp_path / "lib",)


@pytest.mark.parametrize(
    ("python", "found"),
    [
        ("", ""),
        ("python3.13", "python3.13"),
        ("venv/bin/python", "FOLDER/venv/bin/python"),
        ("../x/python", "PARENT/x/python"),
        ("/opt/x/bin/python", "/opt/x/bin/python"),
    ],
)
def test_an_interpreter_is_a_path_or_a_name_for_path(
    tmp_path: Path, python: str, found: str
) -> None:
    file = written(tmp_path, f"catalog.python = '{python}'\n")
    wanted = found.replace("FOLDER", str(tmp_path)).replace("PARENT", str(tmp_path.parent))
    assert loaded(file=file).catalog.python == wanted


@pytest.mark.parametrize(
    "assignment",
    [
        "executor.max_jobs_per_child=0",
        "executor.max_child_memory_mb=31",
        "executor.grace_seconds=-1",
        "executor.start_timeout_seconds=0",
        "limits.max_log_bytes=63",
    ],
)
def test_the_bounds_of_the_executor_are_kept(assignment: str) -> None:
    (said,) = refusal(assignment)
    key, _, value = assignment.partition("=")
    assert said.startswith(f"--set: {key}: found {value}, wanted ")


def test_the_executor_keys_have_their_defaults() -> None:
    settings = loaded()
    assert settings.executor == Executor(
        max_jobs_per_child=1000,
        max_child_memory_mb=512,
        grace_seconds=5,
        start_timeout_seconds=20,
        user="",
    )
    assert settings.limits.max_log_bytes == 65536
    assert (settings.catalog.python_path, settings.catalog.python) == ((), "")
