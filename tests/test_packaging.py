"""What a user installs: the same wheel from the tree and from the sdist, with all it needs."""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import tomli
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    "config",
    "catalog",
    "store",
    "workers",
    "manager",
    "web",
    "console",
    "testing",
    "contrib",
)
SHIPPED_SUFFIXES = {".py", ".sql", ".toml", ".css", ".js", ".svg", ".yml"}
HEAVY = {"cattrs", "hypercorn", "prometheus_client", "psycopg", "starlette", "trio"}
LOCKS = ("run", "dev", "fuzz")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("from-tree"), "--wheel")


@pytest.fixture(scope="module")
def wheel_of_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not told what to build, `build` makes the sdist, unpacks it, and builds from there."""
    return build(tmp_path_factory.mktemp("from-sdist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and none of its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel)
    return folder


def test_both_wheels_are_the_same(wheel: Path, wheel_of_sdist: Path) -> None:
    assert sorted(contents(wheel)) == sorted(contents(wheel_of_sdist))
    assert contents(wheel) == contents(wheel_of_sdist)


def test_the_wheel_holds_every_file_of_the_tree(wheel: Path) -> None:
    assert {name for name in contents(wheel) if name.startswith("musterd/")} == in_tree()


def test_the_wheel_holds_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in contents(wheel)}
    name = "-".join(wheel.name.split("-")[:2])
    assert tops == {"musterd", f"{name}.dist-info", f"{name}.data"}


def test_the_wheel_brings_the_manual_pages_to_where_man_looks(wheel: Path) -> None:
    name = "-".join(wheel.name.split("-")[:2])
    shared = {
        file: data for file, data in contents(wheel).items() if file.startswith(f"{name}.data/")
    }
    for file, section in (("musterd.1", 1), ("musterd.toml.5", 5)):
        found = shared.pop(f"{name}.data/data/share/man/man{section}/{file}")
        assert found == (ROOT / "docs" / "man" / file).read_bytes()
    assert shared == {}


def test_the_wheel_runs_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    found = run("-c", "import musterd.config as c; print(c.__file__)", path=installed, cwd=tmp_path)
    assert Path(found.strip()) == installed / "musterd" / "config" / "__init__.py"
    assert "Usage:" in run("-m", "musterd", "--help", path=installed, cwd=tmp_path)


def test_two_clones_of_a_commit_build_the_same_bytes(tmp_path: Path) -> None:
    """Wheel and sdist, wherever, whenever and under whatever umask; all of a release, with the
    Debian package: tests/nightly/test_release.py.
    """
    built = [built_in(tmp_path / name, umask) for name, umask in (("a", 0o022), ("b/c", 0o077))]
    assert len(built[0]) == 2
    assert built[0] == built[1]


def test_a_release_of_a_changed_tree_is_refused_with_what_is_changed(tmp_path: Path) -> None:
    tree = clone(tmp_path / "tree", 0o022)
    (tree / "README.md").write_text("another")
    (tree / "web" / "left.py").touch()
    done = subprocess.run(
        ["make", "release"], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert (
        "   M README.md\n  ?? web/left.py\n  commit that, or build in a fresh clone" in done.stderr
    )
    assert not (tree / ".venv").exists(), "it is told before anything is installed"


def test_what_is_asked_for_is_locked() -> None:
    """A dependency that was added or raised without `make lock` is found here."""
    asked = tomli.loads((ROOT / "pyproject.toml").read_text())
    locked = {name: locked_versions(ROOT / f"requirements/{name}.txt") for name in LOCKS}
    groups = asked["dependency-groups"]
    run_needs = [*asked["project"]["dependencies"], *asked["build-system"]["requires"]]
    assert unmet([*run_needs, *groups["build"]], locked["run"]) == []
    assert unmet([need for need in groups["dev"] if isinstance(need, str)], locked["dev"]) == []
    assert locked["run"].items() <= locked["dev"].items()
    assert unmet(groups["fuzz"], locked["fuzz"]) == []


def test_help_is_there_at_once() -> None:
    """It loads nothing that takes its time: what a clock would say depends on the neighbours."""
    asked = [sys.executable, "-X", "importtime", "-m", "musterd", "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    loaded = {name.partition(".")[0] for name in names}
    assert "click" in loaded
    assert not loaded & HEAVY


def clone(into: Path, umask: int) -> Path:
    command = ["git", "clone", "--quiet", str(ROOT), str(into)]
    subprocess.run(command, check=True, umask=umask)
    return into


def built_in(place: Path, umask: int) -> Mapping[str, str]:
    """The digest of each file that is built in a clone."""
    tree = clone(place, umask)
    command = [sys.executable, "-m", "hatchling", "build"]
    around = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, cwd=tree, env=around, umask=umask, check=True, capture_output=True)
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tree.glob("dist/*")
    }


def build(into: Path, *options: str) -> Path:
    run("-m", "build", "--no-isolation", *options, "--outdir", into, ROOT)
    (made,) = into.glob("*.whl")
    return made


def run(*arguments: str | Path, path: Path | None = None, cwd: Path = ROOT) -> str:
    """What `python ARGUMENTS` prints, with `path` before all else; it must exit 0."""
    env = {**os.environ, "PYTHONPATH": str(path)} if path else None
    done = subprocess.run(
        [sys.executable, *arguments], env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contents(wheel: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def in_tree() -> set[str]:
    """The files to ship, by way of the links; one of any other type is a mistake."""
    package = ROOT / "musterd"
    places = [package, *(package / folder for folder in FOLDERS)]
    names = [path for path in package.iterdir() if path.is_file()]
    names += [path for place in places[1:] for path in place.rglob("*") if path.is_file()]
    shipped = {path for path in names if "__pycache__" not in path.parts}
    strange = {path for path in shipped if path.suffix not in SHIPPED_SUFFIXES}
    assert strange <= {package / "py.typed"}, f"neither code nor data: {strange}"
    return {path.relative_to(ROOT).as_posix() for path in shipped}


def locked_versions(path: Path) -> Mapping[str, str]:
    """The version of each package in a lock file, every one of which must carry hashes."""
    entries = re.split(r"^(?=[a-z0-9])", path.read_text(), flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries), f"{path}: an entry has no hash"
    pins = [re.match(r"([a-z0-9-]+)(?:\[.*?\])?==(\S+)", entry) for entry in entries]
    return {pin[1]: pin[2] for pin in pins if pin}


def unmet(needs: Iterable[str], locked: Mapping[str, str]) -> list[str]:
    requirements = map(Requirement, needs)
    return [
        f"{need}: locked is {locked.get(canonicalize_name(need.name))}; run `make lock`"
        for need in requirements
        if locked.get(canonicalize_name(need.name), "") not in need.specifier
    ]
