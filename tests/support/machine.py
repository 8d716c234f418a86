"""A Debian of a test's own, booted in a container with its systemd."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import attrs

ROOT = Path(__file__).parents[2]
PACKAGES = "systemd,systemd-sysv,dbus,libnss-systemd,python3,python3-venv,procps"
PROGRAMS = ("debootstrap", "systemd-nspawn", "nsenter")
NSPAWN = ("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network")
# Without it the container's systemd finds the old layout of control groups on some hosts.
ENVIRON = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
BOOT_SECONDS = 60.0
COMMAND_SECONDS = 180.0
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")


def missing() -> list[str]:
    """What this host lacks to boot a machine."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return lacking + ([] if os.geteuid() == 0 else ["root's rights"])


@attrs.frozen
class Done:
    """A command that has ended in the machine."""

    code: int
    out: str
    err: str


@attrs.frozen
class Machine:
    """A booted one. `leader` is its first process, as seen from outside."""

    tree: Path
    leader: int

    def call(self, *command: str, given: str = "") -> Done:
        """Runs a command in it, to its end."""
        inside = ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-r", "-w"]
        environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}
        done = subprocess.run(
            [*inside, *command],
            input=given,
            env=environ,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def do(self, *command: str, given: str = "") -> str:
        """As `call`; a command that fails fails the test. Gives what it printed."""
        done = self.call(*command, given=given)
        assert done.code == 0, f"{command}: exit {done.code}\n{done.out}{done.err}"
        return done.out

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.tree / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def remove(self, path: str) -> None:
        found = self.tree / path.lstrip("/")
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.do("systemctl", "show", "--value", "-p", name, unit).strip()

    def journal(self, unit: str) -> list[dict[str, Any]]:
        """All that was logged for it since the boot, by itself and about it."""
        told = self.do("journalctl", "--unit", unit, "--output", "json", "--all", "--no-pager")
        return [json.loads(line) for line in told.splitlines()]


def base_tree(suite: str) -> Path:
    """A fresh Debian, made once and kept for the runs to come."""
    folder = Path(tempfile.gettempdir()) / f"musterd-machines-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    tree = folder / suite
    if not tree.exists():
        half = folder / f"{suite}.half"
        shutil.rmtree(half, ignore_errors=True)
        _run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(half))
        half.rename(tree)
    return tree


def wheels_for(tree: Path) -> Path:
    """What the lock names, as wheels for the tree's Python; kept beside it."""
    asking = "import sys; print('{}.{}'.format(*sys.version_info))"
    version = _run("chroot", str(tree), "python3", "-c", asking).strip()
    wheels = tree.with_name(f"wheels-{version}")
    tag = f"cp{version.replace('.', '')}"
    abis = [word for one in (tag, "abi3", "none") for word in ("--abi", one)]
    arch = os.uname().machine
    platforms = [word for one in PLATFORMS for word in ("--platform", f"{one}_{arch}")]
    _run(
        sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary=:all:",
        "--require-hashes", "-r", str(ROOT / "requirements" / "run.txt"), "-d", str(wheels),
        "--python-version", version, "--implementation", "cp", *abis, *platforms,
    )  # fmt: skip
    return wheels


def install(tree: Path, wheels: Path, *arguments: str) -> str:
    """Runs deploy/install.sh in a tree that is not booted; gives what it printed."""
    return _run(
        *NSPAWN, "--pipe", f"--directory={tree}", f"--bind-ro={ROOT}:/src",
        f"--bind-ro={wheels}:/wheels", "--setenv=PIP_NO_INDEX=1",
        "--setenv=PIP_FIND_LINKS=/wheels", "/src/deploy/install.sh", *arguments,
    )  # fmt: skip


@contextmanager
def booted(tree: Path, *options: str) -> Generator[Machine]:
    """Boots the tree, and switches it off at the end of the block."""
    command = [*NSPAWN, "--console=pipe", f"--directory={tree}", *options, "--boot"]
    with tempfile.TemporaryFile() as console:
        process = subprocess.Popen(
            command,
            env=os.environ | ENVIRON,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
        try:
            machine = Machine(tree, _leader(process, console))
            machine.call("systemctl", "is-system-running", "--wait")
            yield machine
            machine.call("systemctl", "poweroff", "--force")
            process.wait(BOOT_SECONDS)
        finally:
            process.kill()
            process.wait()


@contextmanager
def one_of_its_own(suite: str, folder: Path, *options: str) -> Generator[Machine]:
    """One with musterd installed and never started. What it was installed from is at /src and
    /wheels.
    """
    tree = base_tree(suite)
    wheels = wheels_for(tree)
    own = copy_of(tree, folder)
    (own / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    said = install(own, wheels)
    assert "systemctl enable --now musterd" in said
    with booted(own, f"--bind-ro={wheels}:/wheels", f"--bind-ro={ROOT}:/src", *options) as one:
        yield one
    shutil.rmtree(own)  # it is large


def _leader(process: subprocess.Popen[bytes], console: IO[bytes]) -> int:
    """Waits until its systemd answers; gives that one's process id."""
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for child in _children(process.pid):
            asked = Machine(Path("/"), child).call("systemctl", "is-system-running")
            if asked.out.strip() not in ("", "offline"):
                return child
        time.sleep(0.1)
    console.seek(0)
    raise AssertionError(f"the machine does not boot:\n{console.read().decode(errors='replace')}")


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(one) for one in text.split()]


def _run(*command: str) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def copy_of(tree: Path, folder: Path) -> Path:
    """A tree of a test's own."""
    copy = folder / tree.name
    _run("cp", "--archive", "--reflink=auto", str(tree), str(copy))
    return copy
