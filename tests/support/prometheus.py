"""A real Prometheus of its own for a test: it scrapes daemons and evaluates rules."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs

from tests.support.missing import ToolMissing

START_SECONDS = 30.0
ASK_SECONDS = 10.0


class PrometheusMissing(ToolMissing):
    """No Prometheus was found; the text says what to install."""


@attrs.frozen
class Prometheus:
    """Asked over its API. `query` gives what Prometheus calls the result of an instant query."""

    port: int
    log: Path

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Raises `AssertionError` with Prometheus' own words where the query is wrong."""
        found: list[dict[str, Any]] = self._ask("query", query=expression)["result"]
        return found

    def query_range(self, expression: str, start: float, end: float) -> list[dict[str, Any]]:
        """The series of a range query, a value each second. Raises as `query` does."""
        span = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": "1"}
        found: list[dict[str, Any]] = self._ask("query_range", query=expression, **span)["result"]
        return found

    def label_values(self, label: str, series: str) -> list[str]:
        """The values that the label has in the series that match."""
        found: list[str] = self._ask(f"label/{label}/values", **{"match[]": series})
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """Those that are pending or fire: labels, annotations, state."""
        found: list[dict[str, Any]] = self._ask("alerts")["alerts"]
        return found

    def is_ready(self) -> bool:
        try:
            return self._get("/-/ready")[0] == http.client.OK
        except OSError:
            return False

    def _ask(self, what: str, **given: str) -> Any:
        status, body = self._get(f"/api/v1/{what}?{urlencode(given)}")
        assert status == http.client.OK, f"{given}: {body.decode()}"
        return json.loads(body)["data"]

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ASK_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def prometheus(
    folder: Path,
    targets: Sequence[str],
    rules: Sequence[Path] = (),
    labels: Mapping[str, str] | None = None,
) -> Generator[Prometheus, None, None]:
    """Runs while the block lasts: scrapes `targets` (host:port) once a second as job `musterd`, and
    evaluates `rules` as often.
    """
    program = shutil.which("prometheus")
    if program is None:
        raise PrometheusMissing("no prometheus: apt-get install prometheus")
    static = {"targets": list(targets), "labels": dict(labels or {})}
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rule) for rule in rules],
        "scrape_configs": [{"job_name": "musterd", "static_configs": [static]}],
    }
    settings_file, log = folder / "prometheus.json", folder / "prometheus.log"
    settings_file.write_text(json.dumps(settings))  # JSON is YAML
    found = Prometheus(_free_port(), log)
    with log.open("wb") as written:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={settings_file}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{found.port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            cwd=folder,
        )
    try:
        _wait_until_ready(found, process)
        yield found
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(found: Prometheus, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not found.is_ready():
        assert process.poll() is None, found.log.read_text()
        assert time.monotonic() < deadline, found.log.read_text()
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
