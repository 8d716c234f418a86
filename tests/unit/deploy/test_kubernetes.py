"""The manifests are ones that Kubernetes takes, and fit musterd and each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from musterd import __version__
from musterd.config.load import SYSTEM_FILE, load
from musterd.config.settings import Settings
from musterd.manager.node.systemd import drain_seconds_max
from tests.support.command import Home
from tests.support.manifests import (
    DEPLOY,
    KUBERNETES,
    autoscaler,
    check_manifest,
    document,
    documents,
    loaded,
    manifest,
)

VERSIONS = ("1.29", "1.33", "1.37")
BASE = KUBERNETES / "base"
TOML = BASE / "musterd.toml"
FILES = sorted(KUBERNETES.rglob("*.yaml"))
# Not of Kubernetes itself: there are no schemas of these at hand. What may stand in them, as their
# documentation has it (KEDA 2.18, Prometheus operator 0.85, kustomize 5).
KEYS = {
    "ScaledObject": {
        *("scaleTargetRef", "pollingInterval", "cooldownPeriod", "initialCooldownPeriod"),
        *("idleReplicaCount", "minReplicaCount", "maxReplicaCount", "fallback", "advanced"),
        "triggers",
    },
    "PodMonitor": {
        *("jobLabel", "podTargetLabels", "selector", "namespaceSelector", "podMetricsEndpoints"),
        *("sampleLimit", "attachMetadata"),
    },
}
TRIGGER_KEYS = {
    *("serverAddress", "query", "threshold", "activationThreshold", "ignoreNullValues"),
    *("authModes", "namespace", "customHeaders", "queryParameters", "unsafeSsl", "timeout"),
}
ENDPOINT_KEYS = {"port", "path", "interval", "scrapeTimeout", "scheme", "authorization", "params"}
FOREIGN = {*KEYS, "Kustomization", "Component"}

native = pytest.mark.parametrize(
    "found",
    [one for path in FILES for one in documents(path) if one["kind"] not in FOREIGN],
    ids=lambda one: str(one["kind"]),
)


@pytest.fixture(scope="module")
def settings() -> Settings:
    """What a pod runs with: the file, and the environment of none."""
    return load(TOML, {}, ()).settings


@pytest.mark.parametrize("version", VERSIONS)
@native
def test_kubernetes_takes_it(found: dict[str, Any], version: str) -> None:
    check_manifest(found, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_what_keda_hands_on(version: str) -> None:
    spec = manifest("ScaledObject")["spec"]
    check_manifest(autoscaler(spec, spec["minReplicaCount"]), version)


@pytest.mark.parametrize("kind", KEYS)
def test_what_extends_kubernetes_has_known_keys(kind: str) -> None:
    assert manifest(kind)["spec"].keys() <= KEYS[kind]


def test_the_trigger_is_one_of_prometheus_in_texts() -> None:
    (trigger,) = manifest("ScaledObject")["spec"]["triggers"]
    assert (trigger["type"], trigger["metricType"]) == ("prometheus", "AverageValue")
    assert trigger["metadata"].keys() <= TRIGGER_KEYS
    assert all(isinstance(value, str) for value in trigger["metadata"].values())


def test_every_file_is_part_of_something() -> None:
    parts = {path for file in FILES for path in named_by(file)}
    loose = {path for path in FILES if path.name != "kustomization.yaml"} - parts
    assert loose == {KUBERNETES / "secret.sample.yaml"}
    assert all(path.exists() for path in parts)
    root = (KUBERNETES / "kustomization.yaml").read_text("utf-8")
    components = {path.parent.name for path in FILES if document(path)["kind"] == "Component"}
    assert set(re.findall(r"^ {2}# - (\w+)", root, re.MULTILINE)) == components


def test_the_daemon_takes_its_configuration(settings: Settings, tmp_path: Path) -> None:
    """Each secret that it names is a key of the Secret that the Deployment mounts."""
    mounted = secrets_of("Deployment")
    folder = mount_of("Deployment", "secrets")
    named = [settings.store.url_file, settings.http.token_file]
    named += [token.token_file for token in settings.http.tokens]
    assert sorted(named) == sorted(f"{folder}/{key}" for key in mounted)
    sample = document(KUBERNETES / "secret.sample.yaml")["stringData"]
    assert set(mounted) < set(sample)
    for key in mounted:
        (tmp_path / key).write_text(sample[key])
    file = tmp_path / "musterd.toml"
    file.write_text(TOML.read_text("utf-8").replace(folder, str(tmp_path)))
    done = Home(tmp_path).call("config", "check", "--config", str(file))
    assert done.code == 0, done


def test_the_environment_names_settings() -> None:
    job = container("Job")
    patched = patch_of("migration")["value"]
    environ = {one["name"]: one["value"] for one in (*job["env"], *patched)}
    settings = load(TOML, environ, ()).settings
    assert settings.store.migrate is False
    assert settings.store.url_file == f"{mount_of('Job', 'secrets')}/owner-url"
    assert "owner-url" in document(KUBERNETES / "secret.sample.yaml")["stringData"]
    assert "items" not in volume("Job", "secrets")["secret"]  # all keys are there for it


def test_the_configuration_is_where_it_is_looked_for() -> None:
    assert mount_of("Deployment", "config") == str(SYSTEM_FILE.parent)
    assert mount_of("Job", "config") == str(SYSTEM_FILE.parent)
    (made,) = document(BASE / "kustomization.yaml")["configMapGenerator"]
    assert made["files"] == [SYSTEM_FILE.name]
    assert {volume(kind, "config")["configMap"]["name"] for kind in ("Deployment", "Job")} == {
        made["name"]
    }


def test_everyone_speaks_of_the_same_port(settings: Settings) -> None:
    (port,) = container("Deployment")["ports"]
    assert settings.http.listen == f"0.0.0.0:{port['containerPort']}"
    (served,) = manifest("Service")["spec"]["ports"]
    assert (served["port"], served["targetPort"]) == (port["containerPort"], port["name"])
    probed = {probe: container("Deployment")[probe]["httpGet"] for probe in PROBES}
    assert {probe: asked["path"] for probe, asked in probed.items()} == PROBES
    assert {asked["port"] for asked in probed.values()} == {port["name"]}
    (scraped,) = manifest("PodMonitor")["spec"]["podMetricsEndpoints"]
    assert scraped.keys() <= ENDPOINT_KEYS
    assert (scraped["port"], scraped["path"]) == (port["name"], "/metrics")
    assert scraped["authorization"]["credentials"]["key"] in secrets_of("Deployment")


def test_a_pod_has_time_to_drain(settings: Settings) -> None:
    assert pod("Deployment")["terminationGracePeriodSeconds"] > drain_seconds_max(settings)


def test_a_pod_is_what_keda_counts_in(settings: Settings) -> None:
    """Its crew is of one size, so that musterd and KEDA do not both answer to the same wish."""
    workers = settings.workers
    (trigger,) = manifest("ScaledObject")["spec"]["triggers"]
    assert workers.default_count == workers.max_count == float(trigger["metadata"]["threshold"])
    assert manifest("ScaledObject")["spec"]["minReplicaCount"] >= 1
    assert patch_of("keda") == {"op": "remove", "path": "/spec/replicas"}
    assert manifest("ScaledObject")["spec"]["scaleTargetRef"]["name"] == "musterd"


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_it_runs_with_no_more_rights_than_it_needs(kind: str) -> None:
    """The number is the image's own."""
    image = (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")
    (user, group) = re.findall(r"^USER (\d+):(\d+)$", image, re.MULTILINE)[0]
    allowed = pod(kind)["securityContext"]
    assert (allowed["runAsUser"], allowed["runAsGroup"]) == (int(user), int(group))
    assert allowed["fsGroup"] == int(group)
    assert allowed["runAsNonRoot"]
    assert allowed["seccompProfile"] == {"type": "RuntimeDefault"}
    own = container(kind)["securityContext"]
    assert own["readOnlyRootFilesystem"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert own["allowPrivilegeEscalation"] is False
    assert pod(kind)["automountServiceAccountToken"] is False
    assert volume(kind, "secrets")["secret"]["defaultMode"] == 0o440


def test_what_belongs_together_finds_each_other() -> None:
    label = {"app.kubernetes.io/name": "musterd"}
    deployment = manifest("Deployment")["spec"]
    assert deployment["template"]["metadata"]["labels"] == label
    assert deployment["selector"]["matchLabels"] == label
    assert manifest("Service")["spec"]["selector"] == label
    for kind in ("PodDisruptionBudget", "PodMonitor"):
        assert manifest(kind)["spec"]["selector"]["matchLabels"] == label
    network = manifest("NetworkPolicy")["spec"]
    assert network["podSelector"]["matchLabels"] == label
    (port,) = container("Deployment")["ports"]
    assert [one["ports"] for one in network["ingress"]] == [[{"port": port["containerPort"]}]]
    assert manifest("Job")["spec"]["template"]["metadata"]["labels"].keys().isdisjoint(label)


def test_the_image_is_of_this_version() -> None:
    (image,) = document(KUBERNETES / "kustomization.yaml")["images"]
    assert (image["name"], image["newTag"]) == ("musterd", __version__)
    assert {container(kind)["image"] for kind in ("Deployment", "Job")} == {image["name"]}


PROBES = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}


def pod(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = manifest(kind)["spec"]["template"]["spec"]
    return found


def container(kind: str) -> dict[str, Any]:
    (found,) = pod(kind)["containers"]
    only: dict[str, Any] = found
    return only


def volume(kind: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in pod(kind)["volumes"] if one["name"] == name]
    only: dict[str, Any] = found
    return only


def mount_of(kind: str, name: str) -> str:
    (found,) = [one for one in container(kind)["volumeMounts"] if one["name"] == name]
    return str(found["mountPath"])


def secrets_of(kind: str) -> list[str]:
    return [str(item["path"]) for item in volume(kind, "secrets")["secret"]["items"]]


def patch_of(component: str) -> dict[str, Any]:
    """The one change that the component makes to the Deployment."""
    (patch,) = document(KUBERNETES / component / "kustomization.yaml")["patches"]
    (found,) = loaded(patch["patch"])
    only: dict[str, Any] = found
    return only


def named_by(file: Path) -> Iterator[Path]:
    """The files that a kustomization is made of."""
    if file.name != "kustomization.yaml":
        return
    found = document(file)
    for name in found.get("resources", []):
        place = file.parent / name
        yield place / "kustomization.yaml" if place.is_dir() else place
    for made in found.get("configMapGenerator", []):
        yield from (file.parent / name for name in made["files"])
