"""All metrics that a node exports, for the pages and rules that name them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import yaml  # type: ignore[import-untyped]  # it brings no types
from prometheus_client.parser import text_string_to_metric_families

from musterd.config.settings import Metrics as MetricsSettings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.metrics.instruments import RunResult
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Decision
from musterd.store.health import Signs
from musterd.store.leases import Reaped, Successes
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.queue import Counts
from tests.support.metric_samples import settled
from tests.support.pages import ROOT

RULES = ROOT / "deploy" / "prometheus" / "musterd.rules.yml"
OWN_LABELS = {"le"}  # of the format, not of the metric
NAME = re.compile(r"(?<![:\w])musterd_\w+")  # not those of recording rules


def tell_everything(metrics: Metrics, tenant: str = DEFAULT_TENANT) -> None:
    """All that a node counts, once; whatever is counted by tenant for this one."""
    metrics.counts(Counts({}, 0, 0, 0.0, None, None), tenant)
    metrics.unknown_kinds(0, tenant)
    metrics.nodes_desired(0, tenant)
    metrics.model_error(0.1, tenant)
    metrics.claimed("report", [0.1])
    metrics.promised("report", [0.1], 1.0)
    metrics.settled([settled(outcome=AttemptOutcome.RETRYING, state=JobState.QUEUED)], tenant)
    metrics.settled([settled()], tenant)
    metrics.succeeded(Successes(kinds=["video"], run_seconds=[0.1]), tenant)
    metrics.reaped([Reaped(1, "backup", 1, "web-1", JobState.FAILED)], tenant)
    decided = Decision(0.0, "latency", 0, 0, 2, 0, 2, "min", 0, 0, 0, slack_seconds=1.0)
    metrics.scaled(attrs.evolve(decided, candidate={"desired": 3}), tenant)
    metrics.crew(1, 1, 0, tenant)
    metrics.store_operation("claim", 0.1)
    metrics.store_error("claim")
    metrics.duties.serve(tenant)
    metrics.duties.holds(tenant, "reaping", held=True)
    metrics.duties.ran(tenant, "reaping", RunResult.OK, 0.1, 1.0)
    metrics.store_health.record(Signs(1.0, 1, 1), tenant)


@cache
def exported() -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels of each metric, from a rendering in which each has been told of."""
    metrics = Metrics(MetricsSettings((1.0,), (1.0,), 10, 48.0), "1")
    tell_everything(metrics)
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels}
        found[name] = (family.type, frozenset(labels - OWN_LABELS))
    return found


def read_yaml(text: str) -> Any:
    return yaml.safe_load(text)


@cache
def rules(file: Path = RULES) -> list[dict[str, Any]]:
    """Recording rules and alerts, as they stand in the file."""
    return [rule for group in read_yaml(file.read_text())["groups"] for rule in group["rules"]]


@cache
def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


@cache
def recorded() -> dict[str, str]:
    """The expressions of the recording rules."""
    return {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression looks at, itself or through recording rules."""
    found = {_family(name) for name in NAME.findall(expression)}
    for name, behind in recorded().items():
        if name in expression:
            found |= metrics_in(behind)
    return found


def _family(sample: str) -> str:
    return re.sub(r"(_seconds)_(bucket|sum|count)$", r"\1", sample)
