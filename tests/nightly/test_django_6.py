"""Django 6, which has its tasks within and wants Python 3.12: the test of the shop once more, by a
newer Python than the other tests have, in an environment of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.pages import ROOT

WANTED = (3, 12)
INSTALL_SECONDS, TEST_SECONDS = 1_200, 300
NAMED = "MUSTERD_TEST_PYTHON"  # the interpreter, if it is none of those on PATH


def newer_pythons() -> Iterator[str]:
    names = (os.environ.get(NAMED, ""), "python3.14", "python3.13", "python3.12")
    for found in filter(None, map(shutil.which, names)):
        asked = [found, "-c", f"import sys, venv; sys.exit(sys.version_info < {WANTED})"]
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            yield found


def run(command: Sequence[str], seconds: float) -> str:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(sys.version_info >= WANTED, reason="here tests/process/test_django.py does it")
def test_the_shop_runs_on_django_6(tmp_path: Path) -> None:
    found = next(newer_pythons(), None)
    if found is None:
        pytest.skip(f"no Python {'.'.join(map(str, WANTED))} on PATH; name one by {NAMED}")
    run([found, "-m", "venv", str(tmp_path)], INSTALL_SECONDS)
    python = str(tmp_path / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
    run([*pip, "--require-hashes", "-r", "requirements/dev.txt"], INSTALL_SECONDS)
    run([*pip, "--no-index", "--no-deps", "--no-build-isolation", "-e", "."], INSTALL_SECONDS)
    version = run([python, "-c", "import django, django.tasks as _; print(django.VERSION[0])"], 60)
    assert int(version) >= 6
    said = run([python, "-m", "pytest", "-p", "no:cacheprovider", "tests/process/test_django.py"],
        TEST_SECONDS)  # fmt: skip
    assert "skipped" not in said
