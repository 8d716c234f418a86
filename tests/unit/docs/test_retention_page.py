"""The page on retention is true: its examples load, its numbers are those that are shipped."""

import ast
from pathlib import Path

import pytest

from musterd.catalog.load import load_catalog
from musterd.config.load import load
from musterd.config.retention import ENDED, Retention
from musterd.manager.duties import retention
from musterd.store.retention import MESSAGES_KEPT_SECONDS
from musterd.workers import hooks
from tests.support.pages import Block, blocks, page

PAGE = page("retention.md")
NO_FILE = Path("no-such-file.toml")
SHIPPED = load(None, {}, [], NO_FILE).settings


@pytest.mark.parametrize("block", blocks(PAGE, "toml"), ids=lambda block: str(block.line))
def test_an_example_loads(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "told.toml"
    file.write_text(block.text)
    if "[kinds." in block.text:
        assert load_catalog([file], SHIPPED.retry)["invoice"].retention.delete_after_hours == 0
    else:
        assert load(file, {}, []).settings.retention != SHIPPED.retention


def test_the_numbers_are_those_that_are_shipped() -> None:
    shipped = SHIPPED.retention
    assert f"after {shipped.stale_after_hours:g} hours" in PAGE
    assert f"after {shipped.delete_after_hours:g} hours" in PAGE
    assert MESSAGES_KEPT_SECONDS == 7 * 86_400
    assert "seven days" in PAGE
    assert "at most `webhooks.timeout_seconds`" in PAGE
    assert SHIPPED.webhooks.timeout_seconds <= hooks.CALL_SECONDS
    assert f"up to {2**retention.DOUBLED_MAX} times as rarely" in PAGE
    assert (retention.LOOKS, retention.REST, retention.LOOK_SECONDS_MIN) == (10, 2, 1)


def test_every_key_and_state_is_told_of() -> None:
    keys = [name for name in Retention.__annotations__ if name not in ENDED]
    assert not [key for key in keys if f"`{key}" not in PAGE and f"\n{key} =" not in PAGE]
    assert all(state in PAGE for state in ENDED)


def test_the_function_shown_is_one() -> None:
    for block in blocks(PAGE, "python"):
        ast.parse(block.text)


def test_the_phrase_of_the_log_is_the_one_that_is_logged() -> None:
    (block,) = blocks(PAGE, "text")
    assert block.text.strip() in Path(retention.__file__).read_text("utf-8")
