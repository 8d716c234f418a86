"""A release, built twice as `make release` builds it, and installed as the docs say."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import ClassVar, TypeAlias

import pytest

from deploy.deb import PYTHON
from tests.fix_postgres import FreshDatabase
from tests.support.command import Daemon, Home
from tests.support.pages import ROOT

BUILD_SECONDS = 600
Installing: TypeAlias = Callable[[Path, Path], Path]

pytestmark = pytest.mark.skipif(
    shutil.which("dpkg-deb") is None or not Path(PYTHON).exists(),
    reason="wanted are Debian and its python3",
)


def released(source: Path, tree: Path, umask: int, zone: str) -> Mapping[str, Path]:
    """What `make release` leaves in a clone, with the tools of this environment."""
    subprocess.run(["git", "clone", "-q", str(source), str(tree)], check=True, umask=umask)
    command = ["make", "release", f"BIN={Path(sys.executable).parent}", "-o", ".venv/dev.stamp"]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "TZ": zone}, umask=umask, capture_output=True,
        text=True, timeout=BUILD_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path for path in sorted((tree / "dist").iterdir())}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Mapping[str, Path]]:
    place = tmp_path_factory.mktemp("releases")
    one, other = place / "one", place / "another" / "place"
    return [
        released(ROOT, one, 0o022, "UTC"),
        released(one, other, 0o077, "Asia/Kathmandu"),  # of the same commit, whatever ROOT has now
    ]


def test_two_releases_of_a_commit_are_the_same_bytes(
    releases: Sequence[Mapping[str, Path]],
) -> None:
    one, other = (
        {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in each.items()}
        for each in releases
    )
    endings = {"".join(re.findall(r"\.(?:whl|tar\.gz|deb|cdx\.json)$", name)) for name in one}
    assert endings == {"", ".whl", ".tar.gz", ".deb", ".cdx.json"}
    assert one == other
    sums = (releases[0]["SHA256SUMS"]).read_text().splitlines()
    assert sorted(sums) == sorted(
        f"{digest}  {name}" for name, digest in one.items() if name != "SHA256SUMS"
    )


def in_own_environment(place: Path, wheel: Path, extra: str = "") -> Path:
    run([sys.executable, "-m", "venv", str(place / "venv")], place)
    wanted = f"{wheel}{extra}"
    run([str(place / "venv/bin/python"), "-m", "pip", "install", "-qq", wanted], place)
    return place / "venv/bin/musterd"


def by_pipx(place: Path, wheel: Path) -> Path:
    run([*tool("pipx"), "install", "--python", sys.executable, str(wheel)], place)
    return place / "bin/musterd"


def by_uv(place: Path, wheel: Path) -> Path:
    run([*tool("uv"), "tool", "install", "--python", sys.executable, str(wheel)], place)
    return place / "bin/musterd"


def tool(name: str) -> list[str]:
    """A program, or the module beside the tests."""
    found = shutil.which(name)
    if found is not None:
        return [found]
    if find_spec(name) is None:
        pytest.skip(f"{name} is missing: .venv/bin/pip install {name}")
    return [sys.executable, "-m", name]


def run(command: Sequence[str], place: Path) -> str:
    around = {
        **os.environ, "PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin"),
        "UV_TOOL_DIR": str(place / "uv"), "UV_TOOL_BIN_DIR": str(place / "bin"),
        "UV_CACHE_DIR": str(place / "uv-cache"), "STATE_DIRECTORY": str(place / "state"),
    }  # fmt: skip
    done = subprocess.run(
        command, env=around, cwd=place, capture_output=True, text=True, timeout=BUILD_SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheel_of(releases: Sequence[Mapping[str, Path]]) -> Path:
    (wheel,) = (path for name, path in releases[0].items() if name.endswith(".whl"))
    return wheel


@pytest.mark.parametrize("install", [in_own_environment, by_pipx, by_uv])
def test_the_wheel_runs_a_job_however_it_is_installed(
    install: Installing, releases: Sequence[Mapping[str, Path]], tmp_path: Path
) -> None:
    program = str(install(tmp_path, wheel_of(releases)))
    around = {**os.environ, "STATE_DIRECTORY": str(tmp_path / "state")}
    with Daemon([program, "run", "--set", "http.listen=127.0.0.1:0"], around) as daemon:
        daemon.wait_until_ready()
        assert "succeeded" in run([program, "enqueue", "report", "--wait"], tmp_path)


CLIENT = """
import asyncio, sys
from musterd import AsyncClient, Client
url = sys.argv[1]
with Client(url, create=url.startswith("sqlite:")) as client:
    job_id = client.enqueue("report", {"by": "the client"})
    print(client.job(job_id)["state"])
async def main():
    async with AsyncClient(url) as client:
        print((await client.job(job_id))["payload"]["by"], await client.cancel(job_id))
asyncio.run(main())
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"trio", "starlette", "hypercorn", "httpcore", "prometheus_client", "click"}))
"""


def test_a_client_alone_needs_what_the_page_says_and_nothing_of_the_web_side(
    releases: Sequence[Mapping[str, Path]], fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "clients.md").read_text()
    lines = re.findall(r"^pip install (.*?)(?: +#.*)?$", page, re.MULTILINE)
    assert len(lines) == 2
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    python = str(tmp_path / "venv/bin/python")
    for line in lines:
        wheel = str(wheel_of(releases))
        words = [wheel if word == "musterd" else word for word in shlex.split(line)]
        run([python, "-m", "pip", "install", "-qq", *words], tmp_path)
    there = run([python, "-m", "pip", "list", "--format=freeze"], tmp_path)
    names = {one.partition("==")[0].partition(" @")[0] for one in there.splitlines()}
    own = {"musterd", "attrs", "psycopg", "psycopg-binary", "psycopg-pool", "typing_extensions"}
    assert names - {"pip", "setuptools"} <= own
    url = fresh_database()
    assert Home(tmp_path / "state", url).call("db", "migrate").code == 0
    for store in (f"sqlite:///{tmp_path}/jobs.db", url):
        said = run([python, "-c", CLIENT, store], tmp_path).splitlines()
        assert said == ["queued", "the client canceled", "[]"]


TRACE = "0af7651916cd43dd8448eb211c80319c"


class Collector(BaseHTTPRequestHandler):
    """Takes spans as OpenTelemetry's own collector does."""

    heard: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.heard.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        del format, args


def test_the_extra_sends_spans_to_a_collector(
    releases: Sequence[Mapping[str, Path]], tmp_path: Path
) -> None:
    program = str(in_own_environment(tmp_path, wheel_of(releases), "[otel]"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        around = {
            **os.environ, "STATE_DIRECTORY": str(tmp_path / "state"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        }  # fmt: skip
        keys = ("--set", "http.listen=127.0.0.1:0", "--set", "tracing.exporter=otlp")
        with Daemon([program, "run", *keys], around) as daemon:
            daemon.wait_until_ready()
            trace = f"00-{TRACE}-b7ad6b7169203331-01"
            run([program, "enqueue", "report", "--wait", "--traceparent", trace], tmp_path)
            daemon.send(signal.SIGTERM)
            assert daemon.end() == 0
        server.shutdown()
    assert {path for path, _ in Collector.heard} == {"/v1/traces"}
    said = b"".join(body for _, body in Collector.heard)
    assert bytes.fromhex(TRACE) in said
    assert b"run report" in said
    assert b"claim" in said
    assert b"settle" in said
