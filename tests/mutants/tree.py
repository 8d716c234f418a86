"""Copies of the tree, for mutants to live in. The repo itself is never written to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutants.mutant import ROOT, Edit

# What simulations and tests are made of. The links in musterd/ are relative: in a copy they lead
# to the copy.
FILES = ("pyproject.toml",)
FOLDERS = ("config", "catalog", "store", "workers", "manager", "web", "console", "musterd", "tests")
SERVER = "MUSTERD_TEST_PG_BIN"  # where PostgreSQL is on this machine
LEFT_OUT = shutil.ignore_patterns("*.tmp", "node_modules", ".*")


@contextmanager
def copied(edits: Iterable[Edit] = ()) -> Generator[Path, None, None]:
    """A copy with these changes, for as long as this lasts."""
    with TemporaryDirectory(prefix="musterd-mutant-") as folder:
        tree = Path(folder) / "tree"
        for name in FOLDERS:
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=LEFT_OUT)
        for name in FILES:
            shutil.copy(ROOT / name, tree / name)
        for edit in edits:
            change(tree / edit.file, edit)
        yield tree


def change(path: Path, edit: Edit) -> None:
    path.write_text(edit.apply(path.read_text()))
    # What was compiled of it came with the copy, and might pass for what it is now.
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    """This interpreter, on the code of the copy: `musterd` too, though the repo is installed. Its
    output and its complaints can be read as one.
    """
    unwanted = ("PG", "MUSTERD_", "PYTEST_", "COV_")
    environ = {
        name: value
        for name, value in os.environ.items()
        if name == SERVER or not name.startswith(unwanted)
    }
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=tree,
        env={**environ, "PYTHONPATH": str(tree)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
