"""What the description allows, and what it does not: made and judged by schemathesis."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import attrs

from tests.support.http_client import ask
from tests.support.pages import ROOT

BIN = ROOT / ".fuzz-venv" / "bin"
KINDS = ["noop", "report", "flaky", "broken"]
ID_MAX = 60  # ids of jobs that are there, or soon will be
# A drain ends the daemon, and a stream of events never ends. What a description cannot say, as that
# two options exclude each other, makes some of what it allows invalid.
LEFT_OUT = (
    *("--exclude-path", "/drain", "--exclude-path", "/events"),
    *("--exclude-checks", "positive_data_acceptance"),
)


@attrs.frozen
class Verdict:
    inputs: int
    found: str  # what schemathesis has to say if it is not content

    @property
    def is_content(self) -> bool:
        return not self.found


def validated(address: str, folder: Path) -> str:
    """Gives what is wrong with the description itself; nothing if it is OpenAPI."""
    file = folder / "openapi.json"
    file.write_bytes(ask(address, "/openapi.json").body)
    done = _run(["openapi-spec-validator", str(file)], folder)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def try_all(address: str, folder: Path, examples: int, seed: int) -> Verdict:
    """Sends about so many inputs to each operation. `folder` is for what schemathesis writes."""
    file = folder / "fuzzed.json"
    file.write_text(json.dumps(_narrowed(ask(address, "/openapi.json").json)))
    command = [
        *("schemathesis", "--no-color", "run", str(file), "--url", address, *LEFT_OUT),
        *("--max-examples", str(examples), "--seed", str(seed), "--phases", "coverage,fuzzing"),
        *("--continue-on-failure", "--warnings", "off"),
    ]
    done = _run(command, folder)
    inputs = re.search(r"([\d,]+) generated", done.stdout)
    assert inputs is not None, done.stdout + done.stderr
    found = "" if done.returncode == 0 else done.stdout
    return Verdict(int(inputs[1].replace(",", "")), found)


def _narrowed(document: dict[str, Any]) -> dict[str, Any]:
    """The description with names and ids that exist here, so that not all ends in a 404."""
    shapes = document["components"]["schemas"]
    shapes["JobWanted"]["properties"]["kind"] = {"enum": KINDS}
    operations = [one for path in document["paths"].values() for one in path.values()]
    for parameter in itertools.chain(*(one.get("parameters", ()) for one in operations)):
        if parameter["name"] == "id":
            few = {"type": "integer", "minimum": 1, "maximum": ID_MAX}
            parameter["schema"] = {"anyOf": [few, parameter["schema"]]}
    return document


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [BIN / command[0], *command[1:]],
        env=environ, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
