"""Every link on every page leads somewhere, and every file that a page names exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import DOCS, ROOT, anchors, blocks, codes, inline, links

PAGES = sorted([ROOT / "README.md", ROOT / "tests" / "README.md", *DOCS.rglob("*.md")])
SOURCE_FILE = re.compile(
    r"(config|catalog|store|workers|manager|web|console|musterd|tests|deploy)/[\w./-]*"
)

IN_A_PICTURE = re.compile(r"[a-z]+/[\w/]+\.(?:py|sql)")

each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@each_page
def test_links_lead_somewhere(path: Path) -> None:
    assert not list(broken_links(path))


@each_page
def test_source_files_that_are_named_are_there(path: Path) -> None:
    named = {code for code in codes(inline(path.read_text("utf-8"))) if SOURCE_FILE.fullmatch(code)}
    home = {ROOT, path.parent}
    assert not [name for name in named if not any((folder / name).exists() for folder in home)]


def test_source_files_in_a_picture_are_there() -> None:
    for path in PAGES:
        pictures = blocks(path.read_text("utf-8"), "mermaid")
        named = {name for picture in pictures for name in IN_A_PICTURE.findall(picture.text)}
        assert not [name for name in named if not (ROOT / name).exists()], path


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [found for found, _ in targets(path) if found.suffix == ".md"]
    assert set(DOCS.rglob("*.md")) <= reached


def test_the_index_links_every_guide() -> None:
    index = DOCS / "index.md"
    linked = {path for path, _ in targets(index)}
    guides = {*DOCS.glob("*.md"), *DOCS.glob("*/README.md")} - {index}
    assert guides <= linked


def test_each_decision_is_listed_once_by_topic() -> None:
    listed = [path for path, _ in targets(DOCS / "decisions" / "README.md")]
    assert sorted(listed) == sorted(set((DOCS / "decisions").glob("[0-9]*.md")))
    numbers = [path.name[:4] for path in listed]
    assert sorted(numbers) == sorted(set(numbers))


def broken_links(path: Path) -> Iterator[str]:
    for target, anchor in targets(path):
        place = f"{path.name}: {target}#{anchor}"
        if not target.exists():
            yield f"{place}: there is no such file"
        elif anchor and anchor not in anchors(target.read_text("utf-8")):
            yield f"{place}: the page has no such heading"


def targets(path: Path) -> Iterator[tuple[Path, str]]:
    """Where the page's relative links lead: file and heading. A folder stands for its README."""
    for link in links(path.read_text("utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        yield (target / "README.md" if target.is_dir() else target), anchor
