"""The Debian package on the Debian that this is: built twice, installed, upgraded, removed, purged,
in a folder of its own. Of the machine outside nothing changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from deploy.deb import PYTHON, build

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"
SETTINGS = "etc/musterd/musterd.toml"

pytestmark = pytest.mark.skipif(
    shutil.which("dpkg-deb") is None or not Path(PYTHON).exists() or os.geteuid() != 0,
    reason="wanted are Debian, its python3, and root",
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """The package twice, made in different places, and the next version of it."""
    os.environ["SOURCE_DATE_EPOCH"] = EPOCH
    folders = [tmp_path_factory.mktemp(name) for name in ("one", "another", "next")]
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folders[0])]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (wheel,) = folders[0].glob("*.whl")
    versions = ("0.1.0", "0.1.0", "0.1.1")
    return [build(wheel, *each) for each in zip(folders, versions, strict=True)]


@attrs.frozen
class Box:
    """Where packages are installed: a folder that stands for /."""

    folder: Path

    def dpkg(self, *words: str, answers: str = "") -> str:
        ways = ("--force-script-chrootless", "--force-depends", "--force-confdef")
        command = ["dpkg", f"--root={self.folder}", *ways, *words]
        done = subprocess.run(command, input=answers, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def musterd(self, *words: str) -> str:
        python = self.folder / "usr/lib/musterd/bin/python3"
        around: Mapping[str, str] = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder),
            "STATE_DIRECTORY": str(self.folder / "var/lib/musterd"),
        }  # fmt: skip
        config = str(self.folder / SETTINGS)
        # The program of the package names its interpreter by the place where it really is.
        command = [str(python), "-I", "-m", "musterd", words[0], "--config", config, *words[1:]]
        done = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def has(self, path: str) -> bool:
        return (self.folder / path).exists()


@pytest.fixture
def box(tmp_path: Path) -> Box:
    for name in ("var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/musterd"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("status", "available"):
        (tmp_path / "var/lib/dpkg" / name).touch()
    return Box(tmp_path)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_two_builds_are_the_same_bytes(packages: Sequence[Path]) -> None:
    assert digest(packages[0]) == digest(packages[1]) != digest(packages[2])


def test_it_is_installed_upgraded_removed_and_purged(packages: Sequence[Path], box: Box) -> None:
    box.dpkg("--install", str(packages[0]))
    assert box.has("usr/share/man/man1/musterd.1.gz")
    unit = (box.folder / "usr/lib/systemd/system/musterd.service").read_text()
    assert "ExecStart=/usr/bin/musterd run" in unit
    assert "/opt/" not in unit
    first = (box.folder / "usr/bin/musterd").read_text().splitlines()[0]
    assert first == "#!/usr/lib/musterd/bin/python3 -I"
    made = json.loads(box.musterd("enqueue", "report", "--json"))["id"]

    settings = box.folder / SETTINGS
    mine = settings.read_text().replace("[workers]\n", "[workers]\nmax_count = 3\n")
    settings.write_text(mine)
    box.dpkg("--install", str(packages[2]))
    assert settings.read_text() == mine, "what was configured is kept"
    assert json.loads(box.musterd("config", "show", "--json"))["workers"]["max_count"] == 3
    assert json.loads(box.musterd("job", str(made), "--json"))["state"] == "queued"

    box.dpkg("--remove", "musterd")
    assert not box.has("usr/lib/musterd")
    assert not box.has("usr/bin/musterd")
    assert box.has(SETTINGS)
    assert box.has("var/lib/musterd/musterd.db"), "the queue is left"

    box.dpkg("--purge", "musterd")
    assert not box.has(SETTINGS)
    assert not box.has("var/lib/musterd")


def test_what_it_needs_is_what_musterd_needs_when_it_runs(packages: Sequence[Path]) -> None:
    listed = subprocess.run(
        ["dpkg-deb", "--contents", str(packages[0])], check=True, capture_output=True, text=True
    ).stdout
    assert "/trio/__init__.py" in listed
    assert "/psycopg_binary/" in listed
    for name in ("hatchling", "/pip/", "/pytest/", "__pycache__", "direct_url.json"):
        assert name not in listed, name
