"""Catalogs of kinds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

import attrs

from musterd.catalog.kinds import KindDefaults
from musterd.catalog.load import SHIPPED_FILE, load_catalog
from musterd.config.faults import ConfigError
from musterd.config.load import load
from tests.fuzz.mutating import changed, crossed
from tests.fuzz.target import Wrong
from tests.fuzz.targets.settings import ABSENT, PIECES, VALUES

KEYS = (
    *("duration_ms", "outcome", "retryable", "fail_first", "python", "command", "http", "budgets"),
    *("isolation", "time_limit_seconds", "grace_seconds", "max_running", "priority", "webhook"),
    *("on_lease_lost", "retry", "retry_on", "phases", "retention", "kind", "name", "succeeded"),
    *("durations_ms", "max_retries", "backoff", "base_seconds", "factor", "jitter"),
)
TABLES = (
    *("[kinds.{0}]", "[kinds.{0}.retry]", "[[kinds.{0}.phases]]", "[kinds.{0}.budgets]"),
    *("[kinds.{0}.retention]", "[kinds.{0}.http]", "[kinds]", "[{0}]", '[kinds."{0}.x"]'),
)
KIND_VALUES = (
    *VALUES,
    *("[100, 400]", "[400, 100]", "[1, 2, 3]", '"success"', '"fail"', '"cancel"', '"shop:f"'),
    *('["/bin/true", "--x"]', '{ method = "POST", url = "http://127.0.0.1:8000/x" }', '"task"'),
    *('"process"', '"thread"', '"requeue"', '"exponential"', '"full"', "{ tokens = 10 }", "100"),
    *('[{ name = "a", duration_ms = 3 }]', '{ url = "https://[::1"}', '["ValueError"]', "2"),
)
SHIPPED = SHIPPED_FILE.read_bytes()


@attrs.frozen
class Catalogs:
    name: str = "catalog"
    share: int = 4

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        whole = tables(rng) if rng.random() < 0.7 else stretch(rng)
        if rng.random() < 0.1 and corpus:
            whole = crossed(rng, whole, rng.choice(corpus))
        return whole if rng.random() < 0.4 else changed(rng, whole, PIECES, 3)

    def check(self, whole: bytes) -> None:
        file = Path(_folder().name) / "kinds.toml"
        file.write_bytes(whole)
        try:
            catalog = load_catalog([file], _defaults())
        except ConfigError as refused:
            if not refused.faults or any(not line.strip() for line in str(refused).split("\n")):
                raise Wrong(f"a refusal that says nothing: {refused}") from None
            return
        if "noop" not in catalog:
            raise Wrong("a shipped kind is gone")


CATALOG = Catalogs()


def tables(rng: Random) -> bytes:
    lines = list[str]()
    for _ in range(rng.randint(1, 4)):
        lines.append(rng.choice(TABLES).format(rng.choice(("a", "a", "video", "noop", "A-1"))))
        for _ in range(rng.randint(0, 4)):
            lines.append(f"{rng.choice(KEYS)} = {rng.choice(KIND_VALUES)}")
    return "\n".join(lines).encode()


def stretch(rng: Random) -> bytes:
    lines = SHIPPED.splitlines(keepends=True)
    start = rng.randrange(len(lines))
    return b"".join(lines[start : start + rng.randint(1, 30)])


@cache
def _defaults() -> KindDefaults:
    return KindDefaults(load(None, {}, [], ABSENT).settings.retry)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="musterd-fuzz-")
