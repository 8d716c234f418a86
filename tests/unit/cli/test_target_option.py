"""`--target` takes what the store takes."""

import click
import pytest
from click.testing import CliRunner

from musterd.console.command import read_target


@click.command()
@click.option("--target", callback=read_target)
def echo(target: str | None) -> None:
    click.echo(repr(target))


@pytest.mark.parametrize("name", ["t", "ü" * 200, " "])
def test_a_name_is_taken_as_it_is(name: str) -> None:
    assert CliRunner().invoke(echo, ["--target", name]).output == f"{name!r}\n"


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_a_name_too_short_or_too_long_is_refused(name: str) -> None:
    refused = CliRunner().invoke(echo, ["--target", name])
    assert refused.exit_code == 2
    assert f"found {len(name)} characters, wanted a name of 1 to 200" in refused.output
