"""Puts inputs to a target and says which are not taken as they should be."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from random import Random

import attrs

from tests.fuzz.target import Target, corpus_of

SECONDS_MAX = 0.1  # of processor time, for one input
TRIES = 3  # before an input counts as slow: the first use of something may load it
FINDINGS_MAX = 20
SHRINK_SECONDS = 5.0
SHOWN_FRAMES = 3


@attrs.frozen
class Finding:
    whole: bytes
    what: str


@attrs.define(eq=False)
class Hunt:
    """What came of it."""

    name: str
    inputs: int = 0
    seconds: float = 0.0  # of processor time
    slowest_seconds: float = 0.0
    findings: list[Finding] = attrs.field(factory=list[Finding])

    @property
    def told(self) -> str:
        line = f"{self.name}: {self.inputs:,} inputs, {self.seconds:.1f} s of processor time"
        line += f", slowest {self.slowest_seconds * 1000:.1f} ms, {len(self.findings)} findings"
        return "\n".join([line, *(f"  {one.whole!r}\n    {one.what}" for one in self.findings)])


def hunt(target: Target, inputs: int, seed: int) -> Hunt:
    """The same inputs for the same seed and corpus. Of many faults of one sort the first is told,
    made as small as it gets.
    """
    found, rng = Hunt(target.name), Random(f"{target.name} {seed}")
    corpus, known = tuple(corpus_of(target.name).values()), set[str]()
    for _ in range(inputs):
        whole = target.make(rng, corpus)
        found.inputs += 1
        what, seconds = tried(target, whole)
        found.seconds += seconds
        found.slowest_seconds = max(found.slowest_seconds, seconds)
        if what is None or sort_of(what) in known:
            continue
        known.add(sort_of(what))
        found.findings.append(Finding(shrunk(target, whole, sort_of(what)), what))
        if len(found.findings) == FINDINGS_MAX:
            break
    return found


def tried(target: Target, whole: bytes) -> tuple[str | None, float]:
    """What is wrong with how an input was taken, and how long that took."""
    seconds = SECONDS_MAX
    for _ in range(TRIES):
        start = time.process_time()
        try:
            target.check(whole)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
            return _told(error), time.process_time() - start
        seconds = min(seconds, took := time.process_time() - start)
        if took < SECONDS_MAX:
            return None, seconds
    return f"slow: more than {SECONDS_MAX:g} s of processor time", seconds


def sort_of(what: str) -> str:
    """Where it went wrong, without what stood in the input."""
    return what.partition(": ")[0]


def shrunk(target: Target, whole: bytes, sort: str) -> bytes:
    """The smallest input that is found to go wrong in the same way."""

    def is_same(smaller: bytes) -> bool:
        what, _ = tried(target, smaller)
        return what is not None and sort_of(what) == sort

    deadline = time.process_time() + SHRINK_SECONDS
    length = len(whole) // 2
    while length and time.process_time() < deadline:
        smaller = _without(whole, length, is_same, deadline)
        if smaller == whole:
            length //= 2
        whole = smaller
    return whole


def _without(whole: bytes, length: int, is_same: Callable[[bytes], bool], deadline: float) -> bytes:
    at = 0
    while at < len(whole) and time.process_time() < deadline:
        smaller = whole[:at] + whole[at + length :]
        if is_same(smaller):
            whole = smaller
        else:
            at += length
    return whole


def _told(error: Exception) -> str:
    """The error's type and the innermost places, and then what it says."""
    frames = traceback.extract_tb(error.__traceback__)[-SHOWN_FRAMES:]
    places = " < ".join(f"{frame.name}" for frame in reversed(frames))
    said = ""
    with suppress(Exception):
        said = str(error)
    return f"{type(error).__name__} in {places}: {said[:500]}"
