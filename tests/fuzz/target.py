"""What is fuzzed: something of the product that must take any input, and say no to most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Protocol

CORPUS = Path(__file__).with_name("corpus")


class Wrong(AssertionError):
    """What the product made of an input is not what its oracle says."""


class Target(Protocol):
    """`share`: how many of a hundred inputs are for it, when all targets are run."""

    @property
    def name(self) -> str: ...

    @property
    def share(self) -> int: ...

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        """An input; the corpus is what was kept of earlier ones, and may be empty."""
        ...

    def check(self, whole: bytes) -> None:
        """Raises whatever the product raises that it should not, and `Wrong`."""
        ...


def corpus_of(name: str) -> dict[str, bytes]:
    """What is kept for a target, by the names of the files."""
    folder = CORPUS / name
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return {file.name: file.read_bytes() for file in files}
