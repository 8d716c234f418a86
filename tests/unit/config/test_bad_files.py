"""Every file of tests/configs is refused with exactly the lines that stand at its end."""

from pathlib import Path

import pytest

from musterd.catalog.load import load_catalog
from musterd.config.faults import ConfigError
from musterd.config.load import load

FOLDER = Path(__file__).parents[2] / "configs"
ABSENT = Path("/nonexistent/musterd.toml")


def expected_lines(file: Path) -> list[str]:
    """Gives the lines that start with `#!`, places filled in."""
    return [
        line.removeprefix("#! ").replace("FILE", str(file)).replace("FOLDER", str(FOLDER))
        for line in file.read_text().splitlines()
        if line.startswith("#! ")
    ]


@pytest.mark.parametrize("file", sorted(FOLDER.glob("bad.*.toml")), ids=lambda file: file.name)
def test_a_bad_file_is_refused_with_all_its_faults(file: Path) -> None:
    retry = load(None, {}, [], ABSENT).settings.retry
    with pytest.raises(ConfigError) as refused:
        load_catalog([file], retry) if ".catalog." in file.name else load(file, {}, [], ABSENT)
    assert [str(fault) for fault in refused.value.faults] == expected_lines(file)
    assert str(refused.value).splitlines() == expected_lines(file)


def test_no_complaint_shows_a_secret() -> None:
    said = [line for file in FOLDER.glob("bad.*.toml") for line in expected_lines(file)]
    assert not [line for line in said if "secret" in line or "pa/ss" in line]
