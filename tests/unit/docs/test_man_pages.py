"""The manual pages are those of this program, and sound."""

import subprocess

import pytest

from musterd import __version__
from tests.support.man_pages import FOLDER, escaped, pages
from tests.support.man_texts import RELEASED
from tests.support.missing import program

PAGES = pages()


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_the_programs(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == PAGES[name], "python -m tests.support.man_pages"


def test_there_is_no_other_page() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_sound(name: str) -> None:
    asked = [program("mandoc"), "-T", "lint", "-W", "warning", str(FOLDER / name)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_page_reads_as_it_should() -> None:
    asked = [program("mandoc"), "-T", "utf8", "-O", "width=100", str(FOLDER / "musterd.1")]
    text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    plain = "".join(part for part in text.split("\b"))
    for said in ("NAME", "EXIT STATUS", "SIGNALS", "SEE ALSO"):
        assert all(letter in plain for letter in said)
    assert __version__ in RELEASED


def test_nothing_in_a_text_is_obeyed() -> None:
    assert escaped(".SH x") == "\\&.SH x"
    assert escaped("'\\n --x") == "\\&'\\en \\-\\-x"
