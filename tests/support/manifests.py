"""The YAML files of deploy/, as plain values."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.pages import ROOT

# Neither has types of its own.
yaml: Any = import_module("yaml")
schemas: Any = import_module("kubernetes_validate")

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


def loaded(text: str) -> Any:
    """What a piece of YAML says."""
    return yaml.safe_load(text)


@cache
def documents(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = list(yaml.safe_load_all(path.read_text("utf-8")))
    return found


def document(path: Path) -> dict[str, Any]:
    """The one that the file holds."""
    (found,) = documents(path)
    return found


def check_manifest(found: dict[str, Any], version: str) -> None:
    """Raises where that version of Kubernetes has no such kind, key or value."""
    schemas.validate(found, version, strict=True)


def autoscaler(scaled: dict[str, Any], replicas_min: int) -> dict[str, Any]:
    """The HorizontalPodAutoscaler that KEDA makes of the `spec` of a ScaledObject."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "musterd"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "musterd"},
            "minReplicas": replicas_min,
            "maxReplicas": scaled["maxReplicaCount"],
            "behavior": scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"],
        },
    }


def manifest(kind: str) -> dict[str, Any]:
    """The one of this kind."""
    found = [one for path in KUBERNETES.rglob("*.yaml") for one in documents(path)]
    (wanted,) = [one for one in found if one["kind"] == kind]
    return wanted
