"""What the reference page of the catalog shows and says is what holds."""

import re
from pathlib import Path

import attrs
import pytest

from musterd.catalog.kinds import Catalog
from musterd.catalog.load import load_catalog
from musterd.catalog.tables import HttpTable, KindTable, RlimitTable
from musterd.config.load import load

PAGE = Path(__file__).parents[3] / "docs" / "catalog.md"
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
ABSENT = Path("/nonexistent/musterd.toml")
SHOWN = {
    *("thumbnail", "backup", "notify", "shop.report", "summarise", "fetch", "archive"),
    *("charge", "rehearsal", "publish"),
}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    kinds = [block for block in BLOCKS if block.startswith("[kinds.")]
    for number, block in enumerate(kinds):
        (tmp_path / f"{number}.toml").write_text(block)
    return load_catalog([tmp_path], load(None, {}, [], ABSENT).settings.retry)


def test_every_kind_of_the_page_loads(catalog: Catalog) -> None:
    assert catalog.keys() >= SHOWN
    assert catalog["summarise"].budgets == {"tokens": 10_000}
    assert catalog["charge"].retryable


def test_the_settings_of_the_page_load(tmp_path: Path) -> None:
    (settings,) = [block for block in BLOCKS if block.startswith("[catalog]")]
    file = tmp_path / "musterd.toml"
    file.write_text(settings)
    for folder in ("kinds", "more", "lib"):
        (tmp_path / folder).mkdir()
    (tmp_path / "more" / "kinds.toml").write_text("")
    found = load(file, {}, [], ABSENT).settings.catalog
    assert found.paths == (tmp_path / "kinds", tmp_path / "more/kinds.toml")
    assert (found.python_path, found.python) == (
        (tmp_path / "lib",),
        f"{tmp_path}/venv/bin/python",
    )


def test_the_page_leaves_no_block_and_no_key_out() -> None:
    assert all(block.startswith(("[kinds.", "[catalog]")) for block in BLOCKS)
    text = PAGE.read_text()
    for table in (KindTable, HttpTable, RlimitTable):
        missing = [key for key in attrs.fields_dict(table) if f"`{key}`" not in text]
        assert missing in ([], ["http"])  # which the page explains key by key
