"""The page on the five designs is true: its files are valid, the names in it are ours."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from musterd.catalog.load import catalog_of
from musterd.config.load import SHIPPED_FILE, load
from musterd.config.settings import Settings, keys, sections
from tests.support.pages import DOCS, blocks, codes, inline, links, page

PAGE = page("designs.md")
FOLDER = DOCS / "designs"
CATALOGS = sorted(FOLDER.glob("*-kinds.toml"))
FILES = sorted(set(FOLDER.glob("*.toml")) - set(CATALOGS))
NO_FILE = Path("no-such-file.toml")

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


def settings_of(file: Path) -> Settings:
    return load(file, {}, [], NO_FILE).settings


@each_file
def test_a_file_is_valid_and_so_is_its_catalog(file: Path) -> None:
    assert len(catalog_of(settings_of(file), {})) > 0


@each_file
def test_each_table_of_a_file_says_what_it_is_for(file: Path) -> None:
    for part in file.read_text("utf-8").split("\n[")[1:]:
        assert "#" in part, part


def test_each_catalog_belongs_to_a_file() -> None:
    used = {path for file in FILES for path in settings_of(file).catalog.paths}
    assert used == set(CATALOGS)


def test_the_page_links_each_file_and_no_other() -> None:
    linked = {Path(link).name for link in links(PAGE) if link.startswith("designs/")}
    handlers = {path.name for path in FOLDER.glob("*.py")}
    assert {path.name for path in FILES} <= linked <= {path.name for path in FILES} | handlers


def test_settings_that_are_named_exist() -> None:
    named = {code.partition(" ")[0] for code in codes(inline(PAGE))}
    dotted = {name for name in named if name.partition(".")[0] in sections() and "." in name}
    assert dotted
    assert dotted - {"webhook.sent_at"} <= set(keys())


def test_the_table_of_design_3_is_that_of_the_shipped_file() -> None:
    """Word for word as its design has it."""
    told = tomli.loads((FOLDER / "3-depth.toml").read_text("utf-8"))["workers"]
    assert told == tomli.loads(SHIPPED_FILE.read_text("utf-8"))["workers"]


def test_the_page_shows_how_to_run_a_file() -> None:
    (shown,) = blocks(PAGE, "sh")
    for line in shown.text.splitlines():
        assert (DOCS.parent / line.rpartition(" ")[2]) in FILES
