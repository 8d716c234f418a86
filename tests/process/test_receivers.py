"""What a real daemon signs is known by those who check it as docs/webhooks.md shows, in both
languages, and by a program that has nothing of either.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.process.test_webhooks import LOCAL, NEXT_SECRET, SECRET, enqueue
from tests.support.command import Home, eventually
from tests.support.hooked import Got, hooked
from tests.support.pages import page

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ASK_NODE = """
import { readFileSync } from "node:fs";
import { isGenuine } from "./receiver.mjs";
const { secret, headers, body } = JSON.parse(readFileSync(0, "utf8"));
console.log(isGenuine(secret, headers, Buffer.from(body, "base64")));
"""


def shown(language: str, function: str) -> str:
    """The block of the page that defines it."""
    found: list[str] = [
        text for name, text in BLOCK.findall(page("webhooks.md")) if name == language
    ]
    (block,) = [text for text in found if function in text]
    return block


def by_python(secret: str, got: Got) -> bool:
    names: dict[str, Any] = {}
    exec(shown("python", "def is_genuine"), names)  # what the page shows
    return bool(names["is_genuine"](secret, got.headers, got.body))


def by_node(folder: Path, secret: str, got: Got) -> bool:
    (folder / "receiver.mjs").write_text(shown("js", "isGenuine"))
    (folder / "ask.mjs").write_text(ASK_NODE)
    body = base64.b64encode(got.body).decode()
    asked = json.dumps({"secret": secret, "headers": dict(got.headers), "body": body})
    done = subprocess.run(
        ["node", "ask.mjs"], cwd=folder, input=asked, capture_output=True, text=True, check=True
    )
    return done.stdout.strip() == "true"


def by_openssl(secret: str, got: Got) -> bool:
    key = base64.b64decode(secret.removeprefix("whsec_")).hex()
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    words = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{key}", "-binary"]
    digest = subprocess.run(words, input=signed, capture_output=True, check=True).stdout
    given = got.headers["webhook-signature"].split(" ")
    return f"v1,{base64.b64encode(digest).decode()}" in given


@pytest.fixture
def got(home: Home, tmp_path: Path) -> Got:
    """A message to a receiver with a secret of its own."""
    (tmp_path / "own").write_text(SECRET)
    with hooked() as receiver:
        table = (
            f'[{{url = "http://127.0.0.1:{receiver.port}/", secret_file = "{tmp_path / "own"}"}}]'
        )
        own = ("--set", f"webhooks.receivers={table}", "--set", f"webhooks.secret={NEXT_SECRET}")
        with home.daemon(*LOCAL, *own) as daemon:
            daemon.wait_until_ready()
            enqueue(home, receiver, "report", "--payload", '{"ü": "☃"}')
            eventually(lambda: len(receiver.got) == 1)
        return receiver.got[0]


def test_each_of_them_knows_it_and_nobody_elses(got: Got, tmp_path: Path) -> None:
    changed = attrs.evolve(got, body=got.body + b" ")
    ways: dict[str, Callable[[str, Got], bool]] = {"python": by_python}
    if shutil.which("node"):
        ways["node"] = partial(by_node, tmp_path)
    if shutil.which("openssl"):
        ways["openssl"] = by_openssl
    for way, knows in ways.items():
        found = knows(SECRET, got), knows(NEXT_SECRET, got), knows(SECRET, changed)
        assert found == (True, False, False), way
