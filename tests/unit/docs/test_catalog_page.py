"""The page on the catalog is true: its examples load, its tables are those of the code."""

from pathlib import Path

import attrs
import pytest

from musterd.catalog.load import load_catalog
from musterd.catalog.retry import delay_seconds
from musterd.catalog.tables import KindTable
from musterd.config.load import load
from musterd.config.settings import Retry
from tests.support.pages import Block, bare, blocks, page, table

PAGE = page("catalog.md")
RETRY = load(None, {}, [], Path("no-such-file.toml")).settings.retry


@pytest.mark.parametrize("block", blocks(PAGE, "toml"), ids=lambda block: f"line {block.line}")
def test_an_example_loads(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "kinds.toml"
    file.write_text(block.text)
    assert load_catalog([file], RETRY)


def test_every_key_of_a_kind_is_told() -> None:
    found = {bare(key) for key, *_ in table(PAGE, "key", "left out")}
    assert found == set(attrs.fields_dict(KindTable))


def test_the_delays_shown_are_those_of_the_code() -> None:
    for backoff, _, shown in table(PAGE, "`backoff`", "delay"):
        policy = Retry(4, bare(backoff), 1, 2, 300, "none")  # type: ignore[arg-type]  # from the page
        delays = [delay_seconds(policy, failures, 1, failures) for failures in (1, 2, 3, 4)]
        assert shown == ", ".join(f"{delay:g}" for delay in delays) + " s"
