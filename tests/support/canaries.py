"""Secrets that must show up nowhere, and all that a test has seen: is one of them in it?"""

from __future__ import annotations

import base64
import os
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import attrs
import click
from click.testing import CliRunner

from musterd.console.command import musterd

CANARY = "canary-of-the"


@attrs.define
class Cage:
    """`secrets` by what they are. `see` takes what was written somewhere; `sung` says what of the
    secrets was in it.
    """

    secrets: Mapping[str, str]
    sung: list[str] = attrs.field(factory=list[str])

    def see(self, where: str, text: str) -> None:
        for what, secret in self.secrets.items():
            for form in (
                secret,
                quote(secret, safe=""),
                base64.b64encode(secret.encode()).decode(),
            ):
                if form in text:
                    around = text[max(0, text.index(form) - 80) :][:200]
                    self.sung.append(f"{where} shows {what}: …{around}…")
                    break

    def call(self, environ: Mapping[str, str], *words: str) -> str:
        """A verb in this process, its output and its traceback, if there is one."""
        bare: dict[str, str | None] = dict.fromkeys(_ours())
        runner = CliRunner(env=bare | dict(environ))
        done = runner.invoke(musterd, list(words), prog_name="musterd")
        text = done.stdout + done.stderr
        if done.exc_info is not None:
            text += "".join(traceback.format_exception(*done.exc_info))
        self.see(f"musterd {' '.join(words)}", text)
        return text


def verbs(group: click.Group = musterd, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every verb that there is, by its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield (*path, name)
            yield from verbs(command, (*path, name))
        else:
            yield (*path, name)


def children_of(pid: int) -> list[int]:
    """Its processes, and theirs."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for tasks in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            fresh = [int(word) for word in tasks.read_text().split()]
            found += fresh
            waiting += fresh
    return found


def _ours() -> list[str]:
    return [name for name in os.environ if name.startswith(("MUSTERD_", "PG"))]
