"""A machine whose daemon and verbs read one file of configuration, which changes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.support.command import Daemon, Done, Home

WORKERS = "[workers]\nmax_count = 6\n"
HANDLERS = """
import time
from pathlib import Path
WORD = {word!r}
def say(job):
    if "gate" in job.payload:
        Path(job.payload["gate"] + ".say").touch()
        while not Path(job.payload["gate"]).exists():
            time.sleep(0.02)
    return WORD
"""
LINE = "touch {gate}.shout; while ! [ -e {gate} ]; do sleep 0.02; done; echo {word}; exit {code}"
KINDS = """
[kinds.say]
python = "spoken:say"
[kinds.shout]
command = ["sh", "-c", "{line}"]
retryable = true
retry = {{ base_seconds = 0.1, backoff = "fixed" }}
"""


@attrs.frozen
class Site:
    """A machine whose daemon and verbs read one file, with a folder of kinds beside it."""

    home: Home
    file: Path

    def write(self, text: str = WORKERS) -> None:
        self.file.write_text(text)

    def call(self, *arguments: str) -> Done:
        return self.home.call("--config", str(self.file), *arguments)

    @contextmanager
    def daemon(self) -> Generator[Daemon]:
        with self.home.daemon("--config", str(self.file)) as daemon:
            daemon.wait_until_ready()
            yield daemon

    @property
    def gate(self) -> Path:
        """Work that waits goes on when this is there."""
        return self.file.parent / "gate"

    def speak(self, word: str, code: int = 0) -> None:
        """Writes what the handlers and programs of this site say."""
        folder = self.file.parent / "kinds"
        folder.mkdir(exist_ok=True)
        (folder / "spoken.py").write_text(HANDLERS.format(word=word))
        text = KINDS.format(line=LINE.format(gate=self.gate, word=word, code=code))
        (folder / "kinds.toml").write_text(text)
