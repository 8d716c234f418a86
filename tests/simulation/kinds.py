"""The catalog of a simulated cluster, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from musterd.catalog.kinds import Catalog, Phase, Pipeline, Python, WorkKind
from musterd.config.load import load
from musterd.config.settings import Settings
from tests.simulation.users import PHASES

NO_FILE = Path("no-such-file.toml")
WORK = Python("tests.simulation.handlers", "work", "task", ())


@cache
def settings_with(knobs: tuple[tuple[str, Any], ...]) -> Settings:
    """The shipped defaults, but for these. No run lasts an hour: comparing hours with the model is
    off, because so little is kept of the log.
    """
    given = (("events.keep_hours", 1), *knobs)
    sets = [f"{name.replace('__', '.')}={value}" for name, value in given]
    return load(None, {}, sets, NO_FILE).settings


def settings_of(knobs: Mapping[str, Any], **changes: Any) -> Settings:
    return settings_with(tuple(sorted({**knobs, **changes}.items())))


def catalog_of(settings: Settings, caps: Mapping[str, int | None]) -> Catalog:
    plain = WorkKind(
        name="plain",
        behaviour=WORK,
        retryable=True,
        retry=settings.retry,
        time_limit_seconds=None,
        priority=0,
        on_lease_lost="requeue",
        source="simulation:1",
        grace_seconds=1.0,
    )
    phases = tuple(Phase(name, attrs.evolve(plain, name="pipeline", phase=name)) for name in PHASES)
    return Catalog(
        [
            plain,
            attrs.evolve(plain, name="brief"),
            attrs.evolve(plain, name="capped", max_running=caps["capped"]),
            attrs.evolve(plain, name="pipeline", behaviour=Pipeline(phases)),
            attrs.evolve(plain, name="once", retryable=False, on_lease_lost="fail"),
            attrs.evolve(plain, name="rest", on_lease_lost="pause", time_limit_seconds=3.0),
        ]
    )
