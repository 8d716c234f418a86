"""The Debian package of a release, by dpkg-deb alone: `python -m deploy.deb WHEEL FOLDER`, with a
version if it is not the wheel's.

musterd and what it needs, verified by the hashes of requirements/run.txt, are a virtual environment
in /usr/lib/musterd whose interpreter is Debian's own. So the package is for one architecture and
one version of Python, those of the machine that builds it. The same commit gives the same bytes:
SOURCE_DATE_EPOCH is the time of all files, and nothing in them knows where it was built.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "run.txt"
PYTHON = "/usr/bin/python3"
HOME = "usr/lib/musterd"
UNITS = ("musterd.service", "musterd@.service", "musterd-instances.service")
OURS = "musterd (pyproject.toml)"
SUMMARY = "auto-scaling worker manager over PostgreSQL or embedded SQLite"
CONTROL = """\
Package: musterd
Version: {version}
Architecture: {architecture}
Maintainer: The musterd maintainers <maintainers@musterd.invalid>
Installed-Size: {kib}
Depends: python3 (>= {python}~), python3 (<< {next_python}~)
Recommends: systemd (>= 252)
Section: admin
Priority: optional
Description: {summary}
 You put jobs into a durable queue; a daemon runs them, and hires and retires workers
 as demand changes. Every job runs under a lease, so no job is lost when a worker, a
 node or the database dies.
"""
# DPKG_ROOT is where dpkg installs, where that is not /: nothing of this machine is touched then.
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    home="$DPKG_ROOT/usr/lib/musterd"
    "$home/bin/python3" -m compileall -q "$home/lib" || true
    if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        # The old daemon drains, and its last jobs may take minutes: dpkg does not wait for them.
        [ -z "$2" ] || systemctl try-restart --no-block musterd.service 'musterd@*.service'
    fi
fi
"""
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now musterd.service 'musterd@*.service' musterd-instances.service || true
fi
find "$DPKG_ROOT/usr/lib/musterd" -name __pycache__ -prune -exec rm -rf {} +
"""
POSTRM = """\
#!/bin/sh
set -e
if [ "$1" = purge ]; then
    # The queue itself goes: `remove` has left it.
    rm -rf "$DPKG_ROOT/var/lib/musterd" "$DPKG_ROOT/var/lib/private/musterd"
fi
if [ "$1" != upgrade ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
"""
COPYRIGHT = """\
musterd: copyright of the musterd maintainers, licensed under the Apache License, version 2.0,
which is in /usr/share/common-licenses/Apache-2.0.

What it needs is in /usr/lib/musterd/lib: each package there has its METADATA and licence beside it.
"""


def build(wheel: Path, folder: Path, version: str) -> Path:
    """Returns the package. Needs dpkg-deb, pip, and Debian's python3 with the version to serve."""
    minor = int(_said([PYTHON, "-c", "import sys; print(sys.version_info[1])"]))
    architecture = _said(["dpkg", "--print-architecture"])
    made = folder / f"musterd_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "musterd"
        _put_environment(tree, wheel, minor)
        _put_files(tree)
        kib = sum(path.lstat().st_size for path in tree.rglob("*")) // 1024
        said = CONTROL.format(
            version=version, architecture=architecture, kib=kib, summary=SUMMARY,
            python=f"3.{minor}", next_python=f"3.{minor + 1}",
        )  # fmt: skip
        _put_scripts(tree, said)
        _settle(tree)
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(made)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return made


def needs_of(lock: str) -> str:
    """The part of the lock that musterd needs when it runs: what builds it is there too."""
    entries = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    named = {re.split(r"[=\[ ]", entry, maxsplit=1)[0]: entry for entry in entries}
    asked = {
        name: set(re.findall(r"^ +#(?: via)? +(\S.*)$", entry, re.MULTILINE))
        for name, entry in named.items()
    }
    kept, found = set[str](), {OURS}
    while found:
        kept |= found
        found = {name for name, by in asked.items() if by & kept} - kept
    return "".join(entry for name, entry in named.items() if name in kept)


def _put_environment(tree: Path, wheel: Path, minor: int) -> None:
    home = tree / HOME
    packages = home / "lib" / f"python3.{minor}" / "site-packages"
    (home / "bin").mkdir(parents=True)
    packages.mkdir(parents=True)
    (home / "bin" / "python3").symlink_to(PYTHON)
    (home / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.{minor}\n"
    )
    needs = tree.with_name("needs.txt")
    needs.write_text(needs_of(LOCK.read_text()))
    fit = ["--python-version", f"3.{minor}", "--only-binary=:all:"]
    _install(packages, [*fit, "--require-hashes", "-r", str(needs)])
    _install(packages, [*fit, "--no-index", str(wheel)])
    # Programs, and notes of where each came from, know the folder that they were made in.
    shutil.rmtree(packages / "bin", ignore_errors=True)
    shutil.rmtree(packages / "share", ignore_errors=True)
    for name in ("RECORD", "direct_url.json", "REQUESTED", "INSTALLER"):
        for path in packages.glob(f"*.dist-info/{name}"):
            path.unlink()


def _install(packages: Path, what: Sequence[str]) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
    where = ["--no-deps", "--no-compile", "--target", str(packages), "--upgrade"]
    subprocess.run([*pip, *where, *what], check=True)


def _put_files(tree: Path) -> None:
    program = f"#!/{HOME}/bin/python3 -I\nfrom musterd.console import main\n\nmain()\n"
    _put(tree / "usr/bin/musterd", program, 0o755)
    for unit in UNITS:
        text = (ROOT / "deploy" / "systemd" / unit).read_text()
        _put(tree / "usr/lib/systemd/system" / unit, text.replace("/opt/musterd/bin/", "/usr/bin/"))
    for page in ("musterd.1", "musterd.toml.5"):
        section = page.rpartition(".")[2]
        text = (ROOT / "docs" / "man" / page).read_text()
        _put_packed(tree / f"usr/share/man/man{section}" / f"{page}.gz", text)
    _put(tree / "usr/share/doc/musterd/copyright", COPYRIGHT)
    _put_packed(tree / "usr/share/doc/musterd/changelog.gz", (ROOT / "CHANGELOG.md").read_text())
    settings = _said([sys.executable, "-m", "musterd", "config", "init", "-"])
    _put(tree / "etc/musterd/musterd.toml", settings + "\n")


def _put_scripts(tree: Path, control: str) -> None:
    _put(tree / "DEBIAN/control", control)
    _put(tree / "DEBIAN/conffiles", "/etc/musterd/musterd.toml\n")
    for name, text in (("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)):
        _put(tree / "DEBIAN" / name, text, 0o755)


def _put(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _put_packed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _settle(tree: Path) -> None:
    """Modes and times that do not depend on who builds it, and when."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in [tree, *tree.rglob("*")]:
        if path.is_symlink():
            continue
        is_program = path.is_dir() or os.access(path, os.X_OK)
        path.chmod(0o755 if is_program else 0o644)
        os.utime(path, (epoch, epoch))


def _said(command: Sequence[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return done.stdout.rstrip("\n")


def main() -> None:
    missing = [one for one in ("dpkg-deb", "dpkg", PYTHON) if shutil.which(one) is None]
    if missing:
        sys.exit(
            f"musterd: no {' and no '.join(missing)} here; a Debian package is built on the Debian"
            " that it is for"
        )
    wheel, folder = Path(sys.argv[1]), Path(sys.argv[2])
    named = wheel.name.split("-")[1]
    version = sys.argv[3] if len(sys.argv) > len(("program", "wheel", "folder")) else named
    build(wheel.resolve(), folder.resolve(), version)


if __name__ == "__main__":
    main()
