"""A release, built twice as `make release` builds it, and installed as the docs say."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import pytest

from deploy.deb import PYTHON
from tests.support.command import Daemon
from tests.support.pages import ROOT

BUILD_SECONDS = 600
Installing: TypeAlias = Callable[[Path, Path], Path]

pytestmark = pytest.mark.skipif(
    shutil.which("dpkg-deb") is None or not Path(PYTHON).exists(),
    reason="wanted are Debian and its python3",
)


def released(tree: Path, umask: int, zone: str) -> Mapping[str, Path]:
    """What `make release` leaves in a clone, with the tools of this environment."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True, umask=umask)
    command = ["make", "release", f"BIN={Path(sys.executable).parent}", "-o", ".venv/dev.stamp"]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "TZ": zone}, umask=umask, capture_output=True,
        text=True, timeout=BUILD_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path for path in sorted((tree / "dist").iterdir())}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Mapping[str, Path]]:
    place = tmp_path_factory.mktemp("releases")
    ways = (("one", 0o022, "UTC"), ("another/place", 0o077, "Asia/Kathmandu"))
    return [released(place / name, umask, zone) for name, umask, zone in ways]


def test_two_releases_of_a_commit_are_the_same_bytes(
    releases: Sequence[Mapping[str, Path]],
) -> None:
    one, other = (
        {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in each.items()}
        for each in releases
    )
    endings = {"".join(re.findall(r"\.(?:whl|tar\.gz|deb|cdx\.json)$", name)) for name in one}
    assert endings == {"", ".whl", ".tar.gz", ".deb", ".cdx.json"}
    assert one == other
    sums = (releases[0]["SHA256SUMS"]).read_text().splitlines()
    assert sorted(sums) == sorted(
        f"{digest}  {name}" for name, digest in one.items() if name != "SHA256SUMS"
    )


def in_own_environment(place: Path, wheel: Path) -> Path:
    run([sys.executable, "-m", "venv", str(place / "venv")], place)
    run([str(place / "venv/bin/python"), "-m", "pip", "install", "-qq", str(wheel)], place)
    return place / "venv/bin/musterd"


def by_pipx(place: Path, wheel: Path) -> Path:
    run([*tool("pipx"), "install", "--python", sys.executable, str(wheel)], place)
    return place / "bin/musterd"


def by_uv(place: Path, wheel: Path) -> Path:
    run([*tool("uv"), "tool", "install", "--python", sys.executable, str(wheel)], place)
    return place / "bin/musterd"


def tool(name: str) -> list[str]:
    """A program, or the module beside the tests."""
    found = shutil.which(name)
    if found is not None:
        return [found]
    if find_spec(name) is None:
        pytest.skip(f"{name} is missing: .venv/bin/pip install {name}")
    return [sys.executable, "-m", name]


def run(command: Sequence[str], place: Path) -> str:
    around = {
        **os.environ, "PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin"),
        "UV_TOOL_DIR": str(place / "uv"), "UV_TOOL_BIN_DIR": str(place / "bin"),
        "UV_CACHE_DIR": str(place / "uv-cache"), "STATE_DIRECTORY": str(place / "state"),
    }  # fmt: skip
    done = subprocess.run(
        command, env=around, cwd=place, capture_output=True, text=True, timeout=BUILD_SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("install", [in_own_environment, by_pipx, by_uv])
def test_the_wheel_runs_a_job_however_it_is_installed(
    install: Installing, releases: Sequence[Mapping[str, Path]], tmp_path: Path
) -> None:
    (wheel,) = (path for name, path in releases[0].items() if name.endswith(".whl"))
    program = str(install(tmp_path, wheel))
    around = {**os.environ, "STATE_DIRECTORY": str(tmp_path / "state")}
    with Daemon([program, "run", "--set", "http.listen=127.0.0.1:0"], around) as daemon:
        daemon.wait_until_ready()
        assert "succeeded" in run([program, "enqueue", "report", "--wait"], tmp_path)
