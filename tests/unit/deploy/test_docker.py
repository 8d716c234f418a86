"""The image and the compose sample: pinned, without root, and in step with the settings."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomli

from musterd import __version__
from musterd.config.load import load
from musterd.config.settings import Settings
from musterd.manager.node.systemd import drain_seconds_max
from tests.support.manifests import DEPLOY, document
from tests.support.missing import program
from tests.support.pages import ROOT

DOCKER = DEPLOY / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text("utf-8")
COMPOSE = document(DOCKER / "compose.yaml")
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
EXACT = re.compile(r"[\w/-]+:v?\d+\.\d+(\.\d+)?(-[a-z-]+)?")
SHIPPED = load(None, {}, (), Path("/nonexistent")).settings


def said(word: str) -> list[str]:
    """What follows an instruction, each time that it stands there; continued lines are one."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return [
        " ".join(found.split()) for found in re.findall(rf"^{word} +(.*)$", joined, re.MULTILINE)
    ]


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load(DOCKER / "musterd.toml", {}, ()).settings


def test_what_it_is_built_on_is_named_to_the_last_number() -> None:
    (base,) = said("ARG")
    assert EXACT.fullmatch(base.removeprefix("BASE="))
    assert said("FROM") == ["${BASE} AS build", "${BASE}"]
    images = [one["image"] for one in COMPOSE["services"].values()]
    assert all(EXACT.fullmatch(image) for image in images)
    assert f"musterd:{__version__}" in images


def test_everything_is_installed_by_hash() -> None:
    installs = [step for line in said("RUN") for step in line.split(" && ") if " install " in step]
    by_pip = [step for step in installs if "pip install" in step]
    assert len(by_pip) == 2
    assert "--require-hashes -r requirements/run.txt" in by_pip[0]
    assert "--no-index --no-deps" in by_pip[1]
    (left,) = [step for line in said("RUN") for step in line.split(" && ") if "trove-" in step]
    lock = (ROOT / "requirements" / "run.txt").read_text("utf-8")
    for name in left.partition("--yes ")[2].split():
        assert f"\n{name}==" in f"\n{lock}", f"{name} is not in the lock: nothing to leave behind"


def test_it_runs_as_nobody_in_particular() -> None:
    assert said("USER") == ["10001:10001"]
    assert said("ENTRYPOINT") == ['["musterd"]']
    assert said("CMD")[-1] == '["run"]'
    assert said("STOPSIGNAL") == ["SIGTERM"]
    assert said("VOLUME") == ['["/var/lib/musterd"]']
    assert "STATE_DIRECTORY=/var/lib/musterd" in said("ENV")[-1]


def test_its_port_is_the_one_that_is_listened_at(settings: Settings) -> None:
    port = SHIPPED.http.listen.rpartition(":")[2]
    assert said("EXPOSE") == [port]
    assert f"http://127.0.0.1:{port}/livez" in DOCKERFILE
    assert settings.http.listen == f"0.0.0.0:{port}"
    assert COMPOSE["services"]["musterd"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    (scraped,) = document(DOCKER / "prometheus.yml")["scrape_configs"]
    (names,) = scraped["dns_sd_configs"]
    assert (names["names"], names["port"]) == (["musterd"], int(port))


def test_what_it_is_built_from_is_let_in() -> None:
    assert IGNORED[1] == "*"
    let_in = {line[1:] for line in IGNORED if line.startswith("!")}
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packed = project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    links = {path.readlink().name for path in (ROOT / "musterd").iterdir() if path.is_symlink()}
    assert let_in == {*packed, *links, "pyproject.toml", "requirements/run.txt"}
    assert all((ROOT / name).exists() for name in let_in)


def test_a_container_has_time_to_drain(settings: Settings) -> None:
    given = float(COMPOSE["services"]["musterd"]["stop_grace_period"].removesuffix("s"))
    assert given > drain_seconds_max(settings)


def test_what_is_mounted_is_there() -> None:
    mounted = [
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service["volumes"]
    ]
    missing = [name for name in mounted if name[0] == "." and not (DOCKER / name).exists()]
    assert not missing
    assert {name for name in mounted if name[0] != "."} == set(COMPOSE["volumes"])


def test_each_secret_is_one_that_is_given(settings: Settings) -> None:
    services: dict[str, Any] = COMPOSE["services"]
    given: dict[str, set[str]] = {
        name: set(one.get("secrets", [])) for name, one in services.items()
    }
    assert {name for names in given.values() for name in names} == set(COMPOSE["secrets"])
    files = [settings.store.url_file, settings.http.token_file]
    files += [token.token_file for token in settings.http.tokens]
    assert {f"/run/secrets/{name}" for name in given["musterd"]} == set(files)
    (scraped,) = document(DOCKER / "prometheus.yml")["scrape_configs"]
    assert scraped["authorization"] == {"credentials_file": "/run/secrets/metrics-token"}
    assert "metrics-token" in given["prometheus"]
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "/deploy/docker/secrets/" in ignored


def test_grafana_finds_what_it_shows() -> None:
    (source,) = document(DOCKER / "grafana" / "datasources.yaml")["datasources"]
    scrape = document(DOCKER / "prometheus.yml")["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scrape
    (provider,) = document(DOCKER / "grafana" / "dashboards.yaml")["providers"]
    mounts: list[Any] = COMPOSE["services"]["grafana"]["volumes"]
    assert f"../grafana/dashboards:{provider['options']['path']}:ro" in mounts
    assert "../../docs:/usr/share/grafana/public/musterd:ro" in mounts  # where the panels look


def test_prometheus_takes_its_settings(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    shutil.copy(DEPLOY / "prometheus" / "musterd.rules.yml", tmp_path)
    text = (DOCKER / "prometheus.yml").read_text("utf-8")
    file = tmp_path / "prometheus.yml"
    file.write_text(text.replace("/run/secrets/metrics-token", str(tmp_path / "token")))
    done = subprocess.run(
        [program("promtool", "prometheus"), "check", "config", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
