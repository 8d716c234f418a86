"""The log of a job while its real children write it: by verbs, over HTTP, after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from musterd.store.job_log import lines_of
from tests.support.command import COMMAND, SHORT_DUTIES, Daemon, Home, eventually, kinds_in
from tests.support.http_client import ask
from tests.support.sse_client import stream

SCRIPT = "echo one; echo two >&2; until [ -e {gate} ]; do sleep 0.05; done; echo three"
HANDLERS = """
import logging, pathlib, time

def speaks(job):
    print("printed")
    logging.getLogger("shop").error("logged")
    job.log("told", "debug")
    while not pathlib.Path(job.payload).exists():
        time.sleep(0.05)
    print("at the end")
"""
BRISK = (
    *("--set", "limits.log_interval_ms=200", "--set", "workers.lease_timeout_seconds=2"),
    *("--set", "leases.reap_interval_seconds=0.2", *SHORT_DUTIES),
)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The jobs end once it is there."""
    return tmp_path / "gate"


@pytest.fixture
def options(tmp_path: Path, gate: Path) -> tuple[str, ...]:
    (tmp_path / "talking.py").write_text(HANDLERS)
    script = SCRIPT.format(gate=gate)
    catalog = f"""
[kinds.speaks]
python = "talking:speaks"
[kinds.program]
command = ["/bin/sh", "-c", "{script}"]
[kinds.fails]
command = ["/bin/sh", "-c", "echo trying; exit 1"]
retryable = true
retry = {{ max_retries = 1, base_seconds = 0.1 }}
"""
    return *BRISK, *kinds_in(tmp_path, catalog)


@pytest.fixture
def daemon(machine: Home, options: tuple[str, ...]) -> Generator[Daemon]:
    with machine.daemon(*options) as running:
        running.wait_until_ready()
        yield running


def enqueue(home: Home, options: tuple[str, ...], kind: str, payload: str = "null") -> None:
    assert home.call("enqueue", kind, "--payload", payload, *options).code == 0


def lines(home: Home, job_id: int = 1) -> list[dict[str, Any]]:
    done = home.call("job", str(job_id), "--log", "--json")
    assert done.code == 0, done
    return done.lines


def texts(home: Home, job_id: int = 1) -> list[str]:
    return [str(line["text"]) for line in lines(home, job_id)]


def test_a_handler_is_heard_while_it_runs(
    machine: Home, daemon: Daemon, options: tuple[str, ...], gate: Path
) -> None:
    del daemon
    enqueue(machine, options, "speaks", f'"{gate}"')
    eventually(lambda: len(texts(machine)) == 3)
    found = lines(machine)
    assert [(one["stream"], one["level"], one["text"]) for one in found] == [
        ("stdout", "info", "printed"),
        ("logging", "error", "shop: logged"),
        ("job", "debug", "told"),
    ]
    age = datetime.now(UTC) - datetime.fromisoformat(found[0]["at"])
    assert 0 <= age.total_seconds() < 60
    assert "stdout info printed" in machine.call("job", "1").out, "the report has it too"
    gate.touch()
    done = machine.call("job", "1", "--log", "--follow")
    assert (done.code, done.out.splitlines()[-1].split(maxsplit=3)[1:]) == (
        0,
        ["stdout", "info", "at the end"],
    )


def test_the_lines_of_a_program_are_followed_among_its_events(
    machine: Home, daemon: Daemon, options: tuple[str, ...], gate: Path
) -> None:
    del daemon
    enqueue(machine, options, "program")
    command = [*COMMAND, "job", "1", "--follow", "--json"]
    with subprocess.Popen(
        command, env=machine.environ(), stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        said = ""
        while '"two"' not in said:
            line = following.stdout.readline()
            assert line, said
            said += line
        gate.touch()
        said += following.stdout.read()
    assert following.returncode == 0
    assert said.index('"one"') < said.index('"three"') < said.index("job.succeeded")
    assert said.count('"one"') == said.count('"two"') == said.count('"three"') == 1


def test_over_http_by_pages_and_as_a_stream(
    machine: Home, daemon: Daemon, options: tuple[str, ...], gate: Path
) -> None:
    enqueue(machine, options, "program")
    eventually(lambda: len(texts(machine)) == 2)
    page = ask(daemon.address, "/jobs/1/log").json
    assert (page["state"], page["more"]) == ("running", False)
    assert {one["text"] for one in page["lines"]} == {"one", "two"}
    after = ask(daemon.address, f"/jobs/1/log?after={page['next']}").json
    assert (after["lines"], after["next"]) == ([], page["next"])
    with stream(daemon.address, "?follow=true", path="/jobs/1/log") as reader:
        first = reader.take(2, "line")
        assert {told.data["text"] for told in first} == {"one", "two"}
        gate.touch()
        (third,) = reader.take(1, "line")
        assert (third.data["text"], third.data["number"]) == ("three", 3)
        assert reader.take(1, "end")[0].data == {"state": "succeeded"}
        assert [*reader.events(5)] == []
        assert reader.is_whole
    browser = {"Accept": "text/event-stream"}
    with stream(daemon.address, "", "1.2", headers=browser, path="/jobs/1/log") as reader:
        assert [told.name for told in reader.events(5)] == ["line", "end"]
    assert ask(daemon.address, "/jobs/99/log").status == 404
    assert ask(daemon.address, "/jobs/99/log?follow=true").status == 404
    assert ask(daemon.address, "/jobs/1/log?after=soon").status == 422


def test_each_attempt_has_a_log_of_its_own(
    machine: Home, daemon: Daemon, options: tuple[str, ...]
) -> None:
    del daemon
    enqueue(machine, options, "fails")
    done = machine.call("job", "1", "--log", "--follow")
    assert done.code == 1
    first, heading, second = done.out.splitlines()
    assert heading == "-- attempt 2"
    assert first.endswith(" stdout info trying")
    assert second.endswith(" stdout info trying")
    assert [(one["attempt"], one["number"]) for one in lines(machine)] == [(1, 1), (2, 1)]
    assert machine.call("job", "99", "--log").code == 3


def test_an_attempt_whose_node_died_leaves_what_it_had_said(
    machine: Home, options: tuple[str, ...], gate: Path
) -> None:
    with machine.daemon(*options) as first:
        first.wait_until_ready()
        enqueue(machine, options, "speaks", f'"{gate}"')
        eventually(lambda: len(texts(machine)) == 3)
        os.kill(first.process.pid, signal.SIGKILL)
    gate.touch()
    with machine.daemon(*options) as second:
        second.wait_until_ready()
        eventually(lambda: bool(machine.job(1)["state"] == "succeeded"))
    lost, won = machine.job(1)["attempts"]
    assert lost["outcome"] == "lost"
    assert [line.text for line in lines_of(lost["log"])] == ["printed", "shop: logged", "told"]
    assert [line.text for line in lines_of(won["log"])][-1] == "at the end"
