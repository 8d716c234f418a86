"""What the Debian package is made of, as far as it can be seen without building it, which
`make nightly` does.
"""

import re
import subprocess
from importlib.metadata import distribution

import pytest
from packaging.requirements import Requirement

from deploy import deb


def test_its_needs_are_those_of_the_lock_without_what_builds_musterd() -> None:
    kept = deb.needs_of(deb.LOCK.read_text())
    names = set(re.findall(r"^([a-z0-9-]+)", kept, re.MULTILINE))
    wanted = [Requirement(one) for one in distribution("musterd").requires or ()]
    direct = {one.name for one in wanted if one.marker is None}
    assert direct - {"psycopg"} <= names
    assert {"psycopg", "psycopg-binary", "outcome", "h2"} <= names
    assert not names & {"hatchling", "editables", "pathspec", "packaging", "pluggy"}
    entries = re.split(r"^(?=[a-z0-9])", kept, flags=re.MULTILINE)[1:]
    assert [one for one in entries if "--hash=sha256:" not in one] == []


@pytest.mark.parametrize("script", [deb.POSTINST, deb.PRERM, deb.POSTRM])
def test_its_scripts_can_be_read_by_a_shell(script: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-n"], input=script, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_each_path_of_its_scripts_can_stand_under_another_root() -> None:
    for script in (deb.POSTINST, deb.PRERM, deb.POSTRM):
        own = [line for line in script.splitlines() if "/run/systemd" not in line]
        places = re.findall(r"\S*/(?:usr|var|etc)/\S*", "\n".join(own))
        assert [
            one for one in places if not one.startswith(('"$DPKG_ROOT', 'home="$DPKG_ROOT'))
        ] == []
