"""What the pages show works: their catalogs load, their programs run, their calls arrive."""

import re
import textwrap
from pathlib import Path

from musterd.catalog.kinds import Catalog, Command, HttpCall, KindDefaults
from musterd.catalog.load import load_catalog
from musterd.workers.outcome import Outcome
from musterd.workers.runners.command import CommandRunner
from musterd.workers.runners.http_call import HttpRunner
from musterd.workers.runners.http_client import HttpClient
from musterd.workers.runners.results import AnswerLimits
from tests.support.assignments import RETRY, given
from tests.support.scripted_server import scripted

DOCS = Path(__file__).resolve().parents[2] / "docs"
LIMITS = AnswerLimits(65_536, 64)
BLOCK = re.compile(r"^```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"^# ([\w.-]+)$", re.MULTILINE)


def unpack(page: str, folder: Path) -> None:
    """Writes the page's blocks into files of the names that they give themselves."""
    for block in BLOCK.findall((DOCS / page).read_text()):
        name = NAME.search(block)
        assert name is not None, f"{page}: a block without a name: {textwrap.shorten(block, 60)}"
        path = folder / name[1]
        path.write_text(block)
        path.chmod(0o700)


def catalog_of(folder: Path) -> Catalog:
    return load_catalog([folder / "kinds.toml"], KindDefaults(RETRY))


async def test_the_command_of_its_page(tmp_path: Path) -> None:
    unpack("command-kinds.md", tmp_path)
    kind = catalog_of(tmp_path)["word-count"]
    assert isinstance(kind.behaviour, Command)
    job = given(kind.behaviour, "three little words")
    runner = CommandRunner(LIMITS, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    outcome = await runner.run(job.assignment)
    assert outcome == Outcome("success", '{"words": 3}')
    assert job.said == "counted for job 7\n"
    assert [note.note for note in job.notes] == ["reading"]


async def test_the_call_of_its_page(tmp_path: Path) -> None:
    unpack("http-kinds.md", tmp_path)
    (tmp_path / "notify.token").write_text("Bearer secret\n")
    async with scripted([b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue"]) as server:
        page = (tmp_path / "kinds.toml").read_text()
        (tmp_path / "kinds.toml").write_text(
            page.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
        )
        kind = catalog_of(tmp_path)["notify"]
        assert isinstance(kind.behaviour, HttpCall)
        client = HttpClient()
        outcome = await HttpRunner(client, LIMITS, {}).run(given(kind.behaviour).assignment)
        client.close()
    (seen,) = server.seen
    assert outcome == Outcome("success", "true")
    assert (seen.target, seen.headers["x-shop"]) == ("/notify", "north")
    assert seen.headers["authorization"] == "Bearer secret"
