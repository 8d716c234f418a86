"""All targets that need nothing but the code."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fuzz.target import Target
from tests.fuzz.targets.catalog import CATALOG
from tests.fuzz.targets.child import CHILD
from tests.fuzz.targets.cron import CRON
from tests.fuzz.targets.logs import LOGS
from tests.fuzz.targets.payload import PAYLOAD
from tests.fuzz.targets.settings import ARGUMENTS, ENVIRONMENT, FILES
from tests.fuzz.targets.urls import URLS

PURE: Mapping[str, Target] = {
    target.name: target
    for target in (FILES, ENVIRONMENT, ARGUMENTS, CATALOG, PAYLOAD, CRON, URLS, LOGS, CHILD)
}


def inputs_of(target: Target, total: int) -> int:
    """How many of so many are for this target."""
    return max(1, total * target.share // sum(one.share for one in PURE.values()))
