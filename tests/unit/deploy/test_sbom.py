"""The bill of materials has what is installed, and nothing that changes by itself."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any, cast

from deploy.sbom import LOCK, bill
from musterd import __version__
from tests.support.pages import ROOT


def parts() -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", bill(LOCK.read_text("utf-8"), __version__)["components"])


def test_each_line_of_the_lock_is_a_part_with_all_its_hashes() -> None:
    lock = LOCK.read_text("utf-8")
    pinned = re.findall(r"^([a-z0-9._-]+)(?:\[.*\])?==([^ ;\\\n]+)", lock, re.MULTILINE)
    assert sorted((one["name"], one["version"]) for one in parts()) == sorted(pinned)
    hashes = [
        found["content"] for one in parts() for found in one["externalReferences"][0]["hashes"]
    ]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock))
    assert "psycopg" in {one["name"] for one in parts()}


def test_twice_it_is_the_same_and_names_are_references() -> None:
    written = {
        subprocess.run(
            [sys.executable, "-m", "deploy.sbom"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(written) == 1
    refs = [one["bom-ref"] for one in parts()]
    assert len(set(refs)) == len(refs)
