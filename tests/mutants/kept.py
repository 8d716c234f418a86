"""caught.toml and noticed.toml: what caught each mutant when all were tried last, the simulation
or a test. The page about mutants says the same.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping

import attrs
import tomli

from tests.mutants.mutant import HERE

FILE = HERE / "caught.toml"
HEAD = (
    "# Written by `make mutants ARGS=--keep`: the first seed from 1 on that noticed each mutant.\n"
)

NOTICED = HERE / "noticed.toml"
NOTICED_HEAD = (
    "# Written by `make mutants ARGS=--keep`: the first test that failed of each mutant.\n"
)


@attrs.frozen
class Caught:
    seed: int
    violated: tuple[str, ...]


def kept() -> dict[str, Caught]:
    told = tomli.loads(FILE.read_text()) if FILE.exists() else {}
    return {name: Caught(one["seed"], tuple(one["violated"])) for name, one in told.items()}


def keep(caught: Mapping[str, Caught], names: Iterable[str]) -> None:
    """In the order of these names; what is kept of others is forgotten."""
    known = [(name, caught[name]) for name in names if name in caught]
    lines = [
        f"{name} = {{ seed = {one.seed}, violated = {json.dumps(one.violated)} }}\n"
        for name, one in known
    ]
    FILE.write_text(HEAD + "".join(lines))


def kept_tests() -> dict[str, str]:
    return tomli.loads(NOTICED.read_text()) if NOTICED.exists() else {}


def keep_tests(noticed: Mapping[str, str], names: Iterable[str]) -> None:
    """As `keep`."""
    lines = [f"{name} = {json.dumps(noticed[name])}\n" for name in names if name in noticed]
    NOTICED.write_text(NOTICED_HEAD + "".join(lines))


def median(caught: Iterable[Caught]) -> float:
    """Of the seeds that it took: they are tried from 1 on."""
    return statistics.median(one.seed for one in caught)
