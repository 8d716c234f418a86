"""docs/first-kind.md, followed word by word in a folder that stands for the clone."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from tests.support.command import Daemon, Home

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/first-kind.md").read_text()
SHIM = '#!/bin/sh\nPYTHONPATH={root} exec {python} -m musterd "$@"\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The Makefile, the command where it is after `make`, and the files of step 1."""
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    command = tmp_path / ".venv/bin/musterd"
    command.parent.mkdir(parents=True)
    words = {"root": shlex.quote(str(ROOT)), "python": shlex.quote(sys.executable)}
    command.write_text(SHIM.format(**words))
    command.chmod(0o755)
    (command.parent / "activate").write_text(f"PATH={shlex.quote(str(command.parent))}:$PATH\n")
    files = re.findall(r"`(hello/[\w.]+)`\n\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert len(files) == 2
    (tmp_path / "hello").mkdir()
    for name, text in files:
        (tmp_path / name).write_text(text)
    return tmp_path


def shell(script: str, folder: Path, home: Home) -> tuple[int, str]:
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env=home.environ(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode() + done.stderr.decode()


@contextmanager
def started(clone: Path, home: Home) -> Generator[Daemon]:
    """The daemon as `make` starts it. What is run is what make prints: a make between a test and
    its daemon would keep the signals to itself.
    """
    start, *_ = re.findall(r"```sh\n(.*?)\n```", PAGE)
    with running(start, clone, home) as daemon:
        yield daemon


@contextmanager
def running(start: str, clone: Path, home: Home) -> Generator[Daemon]:
    assert start.startswith("make run ")
    code, recipe = shell(f"{start} -n -o .venv/run.stamp", clone, home)
    assert code == 0, recipe
    script = f"cd {shlex.quote(str(clone))} && {recipe}"
    environ = home.environ() | {"MUSTERD_HTTP__LISTEN": "127.0.0.1:0"}  # the usual one may be taken
    with Daemon(["/bin/sh", "-c", script], environ) as daemon:
        daemon.wait_until_ready()
        yield daemon
        daemon.send(signal.SIGINT)
        assert daemon.end() == 0


def test_the_page_does_as_it_says(clone: Path, home: Home) -> None:
    _, enqueue, show = re.findall(r"```sh\n(.*?)\n```", PAGE)
    with started(clone, home) as daemon:
        daemon.wait_for_line("event=watching")
        code, said = shell(enqueue, clone, home)
        _, report = shell(show, clone, home)
        assert code == 0, said
        assert "job 1 succeeded" in said
        assert '{"text": "Hello, world!"}' in report
        assert "greeting world" in report

        handler, kinds = clone / "hello/greeting.py", clone / "hello/kinds.toml"
        lines = handler.read_text().splitlines(keepends=True)
        handler.write_text("".join([*lines[:-1], '    raise ValueError("not today")\n']))
        daemon.wait_for_line('event="files changed"')
        daemon.wait_for_line("event=reloaded generation=2")
        code, said = shell(enqueue, clone, home)
        assert code == 1
        assert "ValueError: not today" in said

        more = 'retry_on = ["ValueError"]\nretry.base_seconds = 0.05\n'
        kinds.write_text(kinds.read_text() + more)
        daemon.wait_for_line("event=reloaded generation=3")
        code, said = shell(enqueue, clone, home)
        _, report = shell(show.replace("job 1", "job 3"), clone, home)
        assert code == 1, said
        assert report.count("retrying") == 3


def test_the_job_of_your_own_in_the_readme_runs(clone: Path, home: Home) -> None:
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("### A job of your own")[2].partition("\n## ")[0]
    for name, text in re.findall(r"```\w+\n# (hello/[\w.]+)\n(.*?)```", section, re.DOTALL):
        (clone / name).write_text(text)
    lines = re.findall(r"^    (.*?)(?: +#.*)?$", section.partition("then:\n")[2], re.MULTILINE)
    export, start, enqueue, jobs = lines
    _, _, paths = export.partition("MUSTERD_CATALOG__PATHS=")
    mine = attrs.evolve(home, more={"MUSTERD_CATALOG__PATHS": shlex.split(paths)[0]})
    with running(start, clone, mine):
        there = f"{export}\n. .venv/bin/activate\n"
        code, said = shell(there + enqueue, clone, home)
        assert (code, "job 1 succeeded" in said) == (0, True), said
        code, said = shell(f"{there}{jobs}\nmusterd job 1", clone, home)
        assert code == 0, said
        assert '{"text": "Hello, world!"}' in said
        assert "greeting world" in said
