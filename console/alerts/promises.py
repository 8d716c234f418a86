"""Alerts for the promises of a catalog: each burns its allowance too fast, over a long window and a
short one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.settings import Scaling
from musterd.store.words import duration_text

SHIPPED_RULES = Path(__file__).with_name("musterd.rules.yml")
GROUP = "musterd-promises"
WORDY_SECONDS = 60.0


@attrs.frozen
class Burn:
    """Fires while promises are broken so many times as often as they may be, in both windows: the
    short one ends the alert soon after the last late start.
    """

    alert: str
    severity: str
    times: float
    long: str
    short: str
    said: str  # the long window, in words
    summary: str


BURNS = (
    Burn("MusterdPromiseBroken", "critical", 14.4, "1h", "5m", "an hour", "are being broken"),
    Burn("MusterdPromiseSlipping", "warning", 6, "6h", "30m", "six hours", "are slipping"),
)


def promises_of(catalog: Catalog, scaling: Scaling) -> Mapping[str, float]:
    """How long jobs of each kind may wait, by name; kinds without a promise are not there."""
    found = {kind: catalog.promises.get(kind, scaling.max_wait_seconds) for kind in sorted(catalog)}
    return {kind: seconds for kind, seconds in found.items() if seconds}


def rules_text(shipped: str, promised: Mapping[str, float], kept: float, runbooks: str) -> str:
    """The shipped rules, with a group for these promises in place of the one for all kinds.
    `kept`: the share of the starts that is to come as promised. `runbooks`: stands before the paths
    of runbooks.
    """
    head, mark, rest = shipped.partition(f"  - name: {GROUP}\n")
    if not mark:
        raise ValueError(f"the shipped rules have no group {GROUP}")
    _, following, later = rest.partition("\n  - name: ")
    own = "\n".join(_group(promised, kept)) if promised else (mark + rest).rstrip("\n")
    text = head + own + "\n" + (following + later if following else "")
    return text.replace("runbook: docs/", f"runbook: {runbooks}docs/")


def _group(promised: Mapping[str, float], kept: float) -> Iterator[str]:
    yield f"  - name: {GROUP}"
    yield "    rules:"
    for kind, seconds in promised.items():
        for burn in BURNS:
            yield from _rule(burn, kind, seconds, kept)


def _rule(burn: Burn, kind: str, seconds: float, kept: float) -> Iterator[str]:
    limit = f"{burn.times * (1 - kept):.6g}"
    promised = f"{seconds:g} s" if seconds < WORDY_SECONDS else duration_text(seconds)
    said = (
        f"{kept * 100:g}% of the jobs of {kind} are to start within {promised}. Within {burn.said},"
        " {{ $value | humanizePercentage }} started later, and it goes on."
    )
    yield f"      - alert: {burn.alert}"
    yield "        expr: >-"
    for word, window in (("", burn.long), ("and ", burn.short)):
        only = f'{{kind="{kind}"}}[{window}]'  # a name has nothing that must be quoted
        yield f"          {word}sum by (job, kind) (rate(musterd_promise_broken_total{only}))"
        yield f"          / sum by (job, kind) (rate(musterd_job_wait_seconds_count{only}))"
        yield f"          > {limit}"
    yield "        for: 1m"
    yield "        labels:"
    yield f"          severity: {burn.severity}"
    yield f'          kind: "{kind}"'  # alike alerts differ by it
    yield "        annotations:"
    yield f'          summary: "Promises to {kind} {burn.summary}."'
    yield f'          description: "{said}"'
    yield f"          runbook: docs/runbooks/{burn.alert}.md"
