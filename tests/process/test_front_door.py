"""What a stranger meets: a banner whose lines work as they stand, and mistakes that are told where
people look, before ten seconds are over.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from musterd import Client
from tests.fix_postgres import FreshDatabase
from tests.support.command import COMMAND, Daemon, Home, eventually, free_port
from tests.support.http_client import ask

FOUND_SECONDS = 10.0
PAGE = {"accept": "text/html"}


@pytest.fixture(params=["sqlite", "postgresql"])
def machine(request: pytest.FixtureRequest, home: Home) -> Home:
    if request.param == "sqlite":
        return home
    fresh: FreshDatabase = request.getfixturevalue("fresh_database")
    return Home(home.folder, fresh())


def client_of(machine: Home) -> Client:
    return Client(machine.store_url or f"sqlite:///{machine.folder.resolve()}/musterd.db")


def is_told(machine: Home, daemon: Daemon, wanted: str) -> bool:
    """Whether each place that has remarks has this one."""
    answered: Any = json.loads(ask(daemon.address, "/status").body)["remarks"]
    if not any(wanted in one for one in answered):
        return False
    page = ask(daemon.address, "/", PAGE).body.decode()
    shown = re.search(r'<div id="remarks"[^>]*>(.*?)</div>', page, re.DOTALL)
    said = machine.call("status", "--json", "--set", daemon.listen).json["remarks"]
    return (
        shown is not None
        and wanted in re.sub("<[^>]+>", "", shown[1])
        and any(wanted in one for one in said)
    )


def test_a_mistyped_kind_is_told_wherever_people_look(machine: Home) -> None:
    with machine.daemon() as daemon, client_of(machine) as client:
        daemon.wait_until_ready()
        job_id = client.enqueue("reprot", {"month": 7})
        began = time.monotonic()
        wanted = "no node knows reprot: 1 job (did you mean report?)"
        eventually(lambda: is_told(machine, daemon, wanted), FOUND_SECONDS)
        assert time.monotonic() - began < FOUND_SECONDS
        gauge = b'musterd_jobs_unknown_kind{tenant="default"} 1.0'
        eventually(lambda: gauge in ask(daemon.address, "/metrics").body, FOUND_SECONDS)
        why = machine.call("why", str(job_id), "--set", daemon.listen).out
        assert "no live node knows kind reprot - did you mean report?" in why
        (advised,) = re.findall(r"`musterd (cancel \d+)`", why)
        assert machine.call(*advised.split()).code == 0
        assert client.job(job_id)["state"] == "canceled"


def test_a_kind_that_fails_and_a_paused_queue_are_told_wherever_people_look(machine: Home) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        assert machine.call("enqueue", "broken", "--count", "5").code == 0
        eventually(lambda: is_told(machine, daemon, "FAILING broken (5 of 5)"), FOUND_SECONDS)
        assert machine.call("queue", "pause").code == 0
        # On the page it is a notice, with the button that ends it.
        eventually(lambda: "Resume the queue" in ask(daemon.address, "/", PAGE).body.decode())
        assert "PAUSED" in machine.call("status", "--set", daemon.listen).out


def test_a_promise_that_is_being_broken_is_told_wherever_people_look(home: Home) -> None:
    keys = ("scaling.policy=latency", "scaling.max_wait_seconds=0.2", "workers.max_count=1",
        "workers.default_count=1")  # fmt: skip
    with home.daemon(*(word for key in keys for word in ("--set", key))) as daemon:
        daemon.wait_until_ready()
        assert home.call("enqueue", "careful", "--count", "15").code == 0
        eventually(lambda: is_told(home, daemon, "longer than promised"), FOUND_SECONDS)


@contextmanager
def on_a_terminal(
    command: list[str], environ: Mapping[str, str], cwd: Path
) -> Generator[list[str]]:
    """What it has written so far, in one text."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, env=environ, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said: list[str] = []
    try:
        while "stop    Ctrl-C" not in "".join(said):
            said.append(os.read(ours, 65536).decode())
        yield said
    finally:
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # it has gone; until then what it writes must go somewhere
            while os.read(ours, 65536):
                pass
        assert process.wait(30) == 0
        os.close(ours)


@pytest.mark.parametrize("way", ["options", "file", "variables"])
def test_the_lines_of_the_banner_work_as_they_stand(way: str, home: Home) -> None:
    home.folder.mkdir(exist_ok=True)
    url, listen = f"sqlite:///{home.folder}/my jobs.db", f"127.0.0.1:{free_port()}"
    (home.folder / "mine.toml").write_text(f'store.url = "{url}"\nhttp.listen = "{listen}"\n')
    options, variables = {
        "options": (["--set", f"store.url={url}", "--set", "http.listen=127.0.0.1:0"], {}),
        "file": (["--config", "mine.toml"], {}),
        "variables": ([], {"MUSTERD_STORE__URL": url, "MUSTERD_HTTP__LISTEN": listen}),
    }[way]
    around = home.environ() | variables
    with on_a_terminal([*COMMAND, "run", *options], around, home.folder) as said:
        lines = re.findall(r"^ +(?:try|also|first) +(.*?)\s*$", "".join(said), re.MULTILINE)
        commands = [one for line in lines for one in line.partition("    (in")[0].split(" · ")]
        assert len(commands) >= 4, said
        # Another terminal, which has none of the daemon's variables.
        script = "\n".join(["set -e", *commands])
        done = subprocess.run(
            ["/bin/sh", "-c", script], env=Home(home.folder / "x").environ(), cwd=home.folder,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, script + done.stdout + done.stderr
        assert "job 1 succeeded" in done.stdout
        assert "healthy: running" in done.stdout
