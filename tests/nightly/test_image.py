"""The image, built by its Dockerfile and run as it says of itself: by a number that is not root's,
on files that cannot be written.

Its base is Debian with a Python, from a folder: no registry is asked. The container is one by hand
(namespaces, a root of its own), so that it needs no runtime that wants cgroups.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.pages import ROOT

BUILD_SECONDS = 900.0
COPY_SECONDS = 120.0
RUN_SECONDS = 90.0
PIP_KEYS = ("cert", "extra-index-url", "find-links", "index-url", "trusted-host")
SETTING = re.compile(r"^\S*?\.([\w-]+)=('.*')$", re.MULTILINE)
NEEDED = ("buildah", "debootstrap", "unshare")

# Makes the container: a root that cannot be written, with memory where the image has its state.
INSIDE = """
set -e
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount --rbind /dev "$ROOT/dev"
mount -t proc proc "$ROOT/proc"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
mount -t tmpfs -o "mode=0700,uid=${OWNER%:*},gid=${OWNER#*:}" tmpfs "$ROOT$STATE"
exec chroot --userspec="$OWNER" --groups= "$ROOT" "$@"
"""
# What is done in it; the daemon and the look at its health are the image's own.
LIFE = """
cd "$STATE_DIRECTORY"
"$@" 2>log &
until grep -q event=ready log; do sleep 0.1; done
echo "who $(id -u):$(id -g)"
touch /opt/musterd/x 2>/dev/null || echo "root is sealed"
musterd enqueue report --wait --json
eval "$HEALTH" && echo "healthy"
kill -TERM $!
wait $!
echo "ended $?"
cat log >&2
"""


@attrs.frozen
class Storage:
    """Where buildah keeps what it makes, and nothing of the machine's own."""

    folder: Path

    def call(self, *arguments: str | Path, seconds: float = BUILD_SECONDS) -> str:
        places = ("--root", self.folder / "storage", "--runroot", self.folder / "run")
        done = subprocess.run(
            ["buildah", *places, *arguments],
            env={**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=ROOT,
        )
        assert done.returncode == 0, f"buildah {arguments[0]}:\n{done.stdout[-4000:]}{done.stderr}"
        return done.stdout.strip()


@attrs.frozen
class Image:
    """What it says of itself, and a copy of its files."""

    config: Mapping[str, Any]
    health: Mapping[str, Any]
    root: Path

    @property
    def command(self) -> list[str]:
        return [*self.config["Entrypoint"], *self.config["Cmd"]]


@pytest.fixture(scope="module", autouse=True)
def able() -> None:
    """These tests fail where they cannot be run: a skipped night proves nothing."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    assert not missing, f"apt-get install {' '.join(missing)}"
    assert os.geteuid() == 0, "namespaces and mounts take root"


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Storage]:
    storage = Storage(tmp_path_factory.mktemp("image"))
    tree = storage.folder / "debian"
    packages = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(
        ["debootstrap", "--variant=minbase", packages, "bookworm", tree],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=BUILD_SECONDS,
    )
    base = storage.call("from", "scratch")
    # Not by reading: a device has no end.
    copied = ["cp", "--archive", "--one-file-system", f"{tree}/.", storage.call("mount", base)]
    subprocess.run(copied, check=True, timeout=COPY_SECONDS)
    storage.call("config", "--env", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", base)
    storage.call("umount", base)
    storage.call("commit", base, "localhost/base:1")
    yield storage
    storage.call("umount", "--all")
    storage.call("rm", "--all")
    shutil.rmtree(storage.folder)  # a gigabyte


@pytest.fixture(scope="module")
def image(storage: Storage) -> Image:
    storage.call(
        *("build", "--format", "docker", "--network", "host", *pip_as_here(storage.folder)),
        *("--build-arg", "BASE=localhost/base:1", "-f", "deploy/docker/Dockerfile"),
        *("-t", "localhost/musterd:test", "."),
    )
    said = json.loads(storage.call("inspect", "--type", "image", "localhost/musterd:test"))
    root = storage.call("mount", storage.call("from", "localhost/musterd:test"))
    return Image(said["OCIv1"]["config"], said["Docker"]["config"]["Healthcheck"], Path(root))


def pip_as_here(folder: Path) -> Sequence[str]:
    """Options that let pip look, while building, where the pip of this machine looks."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    known = {key: ast.literal_eval(value) for key, value in SETTING.findall(told)}
    found = {key: value for key, value in known.items() if key in PIP_KEYS}
    file = folder / "pip.conf"
    file.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in found.items()))
    words = [word.removeprefix("file://") for value in found.values() for word in value.split()]
    folders = {Path(word) for word in words if word.startswith("/") and Path(word).is_dir()}
    places = {"/etc/pip.conf": file} | {str(one): one for one in _with_parents(folders)}
    if "cert" in found:
        places[found["cert"]] = Path(found["cert"])
    return [text for to, place in places.items() for text in ("-v", f"{place}:{to}:ro")]


def _with_parents(folders: set[Path]) -> set[Path]:
    """An index of files leads to files beside it."""
    return {one.parent if one.name == "simple" else one for one in folders}


def test_it_is_small_and_holds_no_tool_that_made_it(image: Image) -> None:
    made = image.root / "opt" / "musterd"
    names = {path.name.partition("-")[0] for path in made.glob("lib/python3*/site-packages/*")}
    assert "musterd" in names
    assert not names & {"pip", "setuptools", "hatchling", "editables", "tests"}
    size = sum(path.lstat().st_size for path in made.rglob("*") if path.is_file())
    assert size < 80_000_000


def test_a_job_runs_in_it(image: Image) -> None:
    """As the image says: its user, its command, its look at its health; TERM drains."""
    config = image.config
    variables = dict(entry.split("=", 1) for entry in config["Env"])
    state = variables["STATE_DIRECTORY"]
    assert list(config["Volumes"]) == [state]
    health = " ".join(f"'{word}'" for word in _quoted(image.health["Test"][1:]))
    container = ("unshare", "--mount", "--pid", "--fork", "sh", "-c", INSIDE, "sh")
    life = ("env", "-i", *config["Env"], f"HEALTH={health}", "sh", "-c", LIFE, "sh")
    done = subprocess.run(
        [*container, *life, *image.command],
        env={**os.environ, "ROOT": str(image.root), "OWNER": config["User"], "STATE": state},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["who 10001:10001", "root is sealed"], done.stdout + done.stderr
    assert json.loads(lines[2])["state"] == "succeeded"
    assert lines[3:] == ["healthy", "ended 0"], done.stdout + done.stderr


def _quoted(words: Sequence[str]) -> list[str]:
    return [word.replace("'", "'\\''") for word in words]
