"""What was found once stays right, and a bounded number of new inputs finds nothing.

`MUSTERD_TEST_SCALE` is how many times as many inputs there are.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import time
from collections.abc import Sequence
from random import Random

import pytest

from tests.fuzz.hunting import SECONDS_MAX, hunt, tried
from tests.fuzz.target import CORPUS, Wrong, corpus_of
from tests.fuzz.targets.every import PURE, inputs_of

INPUTS = int(60_000 * float(os.environ.get("MUSTERD_TEST_SCALE", "1")))
SEED = 1
MEMORY_BYTES_MAX = 300_000_000  # by how much the process may have grown
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
KEPT = [(name, file) for name in PURE for file in corpus_of(name)]


@pytest.mark.parametrize(("name", "file"), KEPT)
def test_what_is_kept_is_taken_as_it_should_be(name: str, file: str) -> None:
    assert tried(PURE[name], corpus_of(name)[file])[0] is None


def test_each_target_has_a_corpus_and_each_corpus_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == set(PURE)


def test_enough_is_tried() -> None:
    assert sum(inputs_of(target, 60_000) for target in PURE.values()) >= 50_000


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PURE)
def test_nothing_is_found(name: str) -> None:
    """`--log-cli-level=info` shows how many inputs there were, and how long they took."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = hunt(PURE[name], inputs_of(PURE[name], INPUTS), SEED)
    logging.getLogger(__name__).info(found.told)
    assert not found.findings, found.told
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * MAXRSS_BYTES < MEMORY_BYTES_MAX


class Broken:
    """A product that falls over `x`, says yes to what it should refuse, and ponders."""

    name, share = "broken", 1

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        return rng.randbytes(3) + rng.choice((b"x", b"y", b"z", *[b"no"] * 9))

    def check(self, whole: bytes) -> None:
        if b"x" in whole:
            raise KeyError(whole)
        if whole.endswith(b"y"):
            raise Wrong(f"taken: {whole!r}")
        if whole.endswith(b"z"):
            end = time.process_time() + 1.2 * SECONDS_MAX
            while time.process_time() < end:
                pass


def test_a_product_that_is_wrong_is_found_out_and_the_input_made_small() -> None:
    found = hunt(Broken(), 60, seed=3)
    assert sorted(one.whole for one in found.findings) == [b"x", b"y", b"z"]
    assert {one.what.split()[0].rstrip(":") for one in found.findings} == {
        "KeyError",
        "Wrong",
        "slow",
    }
    assert found.inputs == 60
    assert "3 findings" in found.told
