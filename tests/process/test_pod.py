"""A daemon with the configuration of the Kubernetes manifests, asked as a cluster asks."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from tests.support.command import Home
from tests.support.http_client import Answer, ask
from tests.support.manifests import KUBERNETES

SECRETS = "/etc/musterd-secrets"
TOKENS = {"http-token": "all-of-it-and-more", "metrics-token": "just-looking-here"}


def test_probes_need_no_token_and_everything_else_does(tmp_path: Path) -> None:
    """By the pod's address, as kubelet and Prometheus do."""
    for name, text in TOKENS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "store-url").write_text(f"sqlite:///{tmp_path}/musterd.db\n")
    file = tmp_path / "musterd.toml"
    shipped = (KUBERNETES / "base" / "musterd.toml").read_text("utf-8")
    file.write_text(shipped.replace(SECRETS, str(tmp_path)))
    home = Home(tmp_path / "state")
    options = ("--config", str(file), "--set", "http.listen=0.0.0.0:0")
    with home.daemon(*options) as daemon:
        daemon.wait_for_line('"event": ?"ready"')
        port = daemon.wait_for_line("page").partition("0.0.0.0:")[2].partition("/")[0]

        def status(path: str, token: str | None = None, method: str = "GET") -> int:
            return asked(port, path, token, method).status

        assert (status("/livez"), status("/readyz")) == (200, 200)
        assert (status("/metrics"), status("/status")) == (401, 401)
        assert status("/metrics", TOKENS["metrics-token"]) == 200
        assert status("/status", TOKENS["metrics-token"]) == 403
        assert status("/drain", TOKENS["metrics-token"], "POST") == 403
        assert (
            asked(port, "/metrics", TOKENS["http-token"]).text.count("musterd_workers_max 8.0") == 1
        )
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0


def asked(port: str, path: str, token: str | None, method: str = "GET") -> Answer:
    headers: Mapping[str, str] = {"host": "10.244.1.7:9477"}
    if token:
        headers = {**headers, "authorization": f"Bearer {token}"}
    return ask(f"127.0.0.1:{port}", path, headers, method=method)
