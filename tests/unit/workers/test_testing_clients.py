"""`musterd.testing.recording`, `inline` and `drain`, as users' tests use them."""

import asyncio  # noqa: TID251 - what users' programs run on
import os
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tomli
import trio

from musterd import AsyncClient, Client, InputRefused, NoSuchJob, NotAllowed
from musterd.testing import HandlerFailed, RecordedJobs, inline, recording
from tests.support.pages import ROOT

KINDS = """
[kinds.receipt]
python = "shop_of_tests:receipt"

[kinds.order]
python = "shop_of_tests:order"

[kinds.flaky]
python = "shop_of_tests:flaky"
retryable = true
[kinds.flaky.retry]
base_seconds = 60
jitter = "none"
max_retries = 3

[kinds.broken]
python = "shop_of_tests:broken"
"""
HANDLERS = """
import threading
from musterd import Client

client = Client("postgresql://nobody@127.0.0.1:1/nowhere")
threads = []

def receipt(job):
    threads.append(threading.current_thread())
    return {"sent": job.payload["order"]}

async def order(job):
    client.enqueue("receipt", {"order": job.payload["order"]})

def flaky(job):
    if job.attempt < 3:
        raise OSError("the line is busy")
    return job.attempt

def broken(job):
    raise ValueError("no such order")
"""
NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop_of_tests.py").write_text(HANDLERS)
    (tmp_path / "kinds.toml").write_text(KINDS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "shop_of_tests", raising=False)
    return tmp_path / "kinds.toml"


def test_what_is_enqueued_is_looked_at_and_goes_nowhere() -> None:
    client = Client(NOWHERE)
    with recording(client) as jobs:
        first = client.enqueue("receipt", {"order": 17}, priority=5, target="t", connection="mine")
        client.enqueue_many([("a", 1), {"kind": "b", "hold": True, "max_attempts": 2}])
        found = jobs.one("receipt", payload={"order": 17})
        assert (found.id, found.priority, found.target) == (first, 5, "t")
        assert (found.state, found.connection, found.tenant) == ("queued", "mine", "default")
        assert [one.kind for one in jobs] == ["receipt", "a", "b"]
        assert (len(jobs), jobs[-1].state, jobs[-1].max_attempts) == (3, "pending", 2)
        assert client.job(first)["payload"] == {"order": 17}
        jobs.none("receipt", payload={"order": 18})
        with pytest.raises(AssertionError, match=r"wanted one job, found 0: 'receipt', priority=1"):
            jobs.one("receipt", priority=1)
        with pytest.raises(
            AssertionError, match=r"(?s)found 1: 'a'; enqueued:\n  1 receipt .* 2 a 1"
        ):
            jobs.none("a")


def test_keys_actions_and_refusals_are_those_of_a_store() -> None:
    with recording(client := Client(NOWHERE)) as jobs:
        first = client.enqueue("a", dedup_key="k")
        assert client.enqueue("a", dedup_key="k") == first
        assert len(jobs) == 1
        assert client.cancel(first) == "canceled"
        assert client.wait(first)["state"] == "canceled"
        assert client.enqueue("a", dedup_key="k") != first
        with pytest.raises(NotAllowed, match="is canceled"):
            client.pause(first)
        with pytest.raises(NoSuchJob):
            client.cancel(99)
        with pytest.raises(InputRefused, match="unknown option 'prio'"):
            client.enqueue("a", prio=1)
        with pytest.raises(TimeoutError):
            client.wait(2, 0)


def test_after_the_block_the_client_is_as_it_was(tmp_path: Path) -> None:
    client = Client(f"sqlite:///{tmp_path}/store.db", create=True)
    with recording(client) as jobs:
        client.enqueue("a")
        client.enqueue("b", tenant="acme")
        client.close()
        assert [(one.kind, one.tenant) for one in jobs] == [("a", "default"), ("b", "acme")]
    assert not (tmp_path / "store.db").exists()
    assert client.job(client.enqueue("c"))["id"] == 1
    client.close()


def test_drain_runs_what_is_due_and_what_that_enqueues(catalog: Path) -> None:
    shop: Any = import_module("shop_of_tests")

    with recording(shop.client, catalog) as jobs:
        shop.client.enqueue("order", {"order": 17})
        jobs.none("receipt")
        ran = jobs.drain()
        assert [(one.kind, one.state) for one in ran] == [
            ("order", "succeeded"),
            ("receipt", "succeeded"),
        ]
        assert jobs.one("receipt").result == {"sent": 17}


def test_drain_until_moves_the_clock_from_one_due_time_to_the_next(catalog: Path) -> None:
    client = Client(NOWHERE)
    with recording(client, catalog) as jobs:
        began, real = jobs.now, time.monotonic()
        client.enqueue("flaky")
        client.enqueue("receipt", {"order": 1}, delay_seconds=3600)
        assert [one.attempt for one in jobs.drain()] == [1]
        assert jobs.now == began
        assert jobs.one("flaky").state == "queued"
        jobs.drain(until=timedelta(minutes=10))
        assert jobs.now == began + timedelta(minutes=10)
        found = jobs.one("flaky")
        assert (found.state, found.attempt, found.result) == ("succeeded", 3, 3)
        assert client.job(found.id)["finished_at"] <= (began + timedelta(minutes=4)).isoformat()
        jobs.none("receipt", state="succeeded")
        jobs.drain(until=began + timedelta(hours=1, seconds=1))
        assert jobs.one("receipt").state == "succeeded"
        with pytest.raises(ValueError, match="which is before"):
            jobs.drain(until=datetime(2020, 1, 1, tzinfo=UTC))
        assert time.monotonic() - real < 30


def test_inline_runs_each_job_before_enqueue_returns(catalog: Path) -> None:
    shop: Any = import_module("shop_of_tests")

    client = shop.client
    with inline(client, catalog) as jobs:
        done = client.enqueue("receipt", {"order": 17})
        assert client.job(done)["result"] == {"sent": 17}
        assert shop.threads == [threading.current_thread()]
        client.enqueue("order", {"order": 18})
        assert jobs.one("receipt", payload={"order": 18}).state == "succeeded"
        client.enqueue("receipt", {"order": 19}, delay_seconds=60)
        assert jobs[-1].state == "queued"
        with pytest.raises(
            HandlerFailed, match=r"(?s)kind broken failed: no such order.*in broken"
        ):
            client.enqueue("broken")


def on_trio(main: Coroutine[Any, Any, None]) -> None:
    async def start() -> None:
        await main

    trio.run(start)


@pytest.mark.parametrize("run", [asyncio.run, on_trio])
def test_the_async_client_on_both_loops(catalog: Path, run: Any) -> None:
    async def main() -> None:
        async with AsyncClient(NOWHERE) as client:
            with recording(client, catalog) as jobs:
                await client.enqueue("receipt", {"order": 1})
                await client.enqueue("receipt", {"order": 2}, connection="mine")
                jobs.drain()
                assert [one.result for one in jobs] == [{"sent": 1}, {"sent": 2}]
                assert (await client.wait(2))["state"] == "succeeded"
            with inline(client, catalog):
                made = await client.enqueue("receipt", {"order": 3})
                assert (await client.job(made))["result"] == {"sent": 3}

    run(main())


def test_a_catalog_is_read_only_to_run(monkeypatch: pytest.MonkeyPatch, catalog: Path) -> None:
    client = Client(NOWHERE)
    with recording(client, "/nowhere/kinds.toml") as jobs:
        client.enqueue("receipt")
        with pytest.raises(Exception, match="nowhere"):
            jobs.drain()
    monkeypatch.setenv("MUSTERD_CATALOG__PATHS", f'["{catalog}"]')
    with recording(client) as jobs:
        client.enqueue("receipt", {"order": 1})
        assert [one.state for one in jobs.drain()] == ["succeeded"]


def test_jobs_are_a_sequence() -> None:
    jobs = RecordedJobs((), run_at_once=False)
    assert (list(jobs), len(jobs), jobs.of("a"), jobs.drain()) == ([], 0, [], [])


PLUGIN_TEST = """
import sys
from musterd import Client

client = Client("postgresql://nobody@127.0.0.1:1/nowhere")

def test_nothing_is_loaded_for_those_who_do_not_ask():
    assert "musterd.testing" not in sys.modules

def test_the_fixture(musterd_recording):
    jobs = musterd_recording(client)
    client.enqueue("receipt", {"order": 1})
    assert jobs.one("receipt").payload == {"order": 1}

def test_it_ends_with_the_test(musterd_recording, musterd_inline):
    assert len(musterd_recording(client)) == 0
    jobs = musterd_inline(client, CATALOG)
    client.enqueue("receipt", {"order": 2})
    assert jobs.one("receipt").result == {"sent": 2}
"""


def test_the_pytest_plugin(catalog: Path) -> None:
    text = PLUGIN_TEST.replace("CATALOG", repr(str(catalog)))
    (catalog.parent / "test_shop.py").write_text(text)
    asked = [sys.executable, "-m", "pytest", "-p", "musterd.pytest_plugin", "test_shop.py"]
    environ = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(catalog.parent),
    }
    done = subprocess.run(
        asked, cwd=catalog.parent, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_the_plugin_loads_nothing_until_it_is_asked() -> None:
    heavy = "{'trio', 'psycopg', 'sqlite3', 'attrs', 'musterd.testing', 'musterd.store'}"
    code = f"import sys, musterd.pytest_plugin; print(sorted({heavy} & set(sys.modules)))"
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_plugin_is_where_pytest_looks() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"musterd": "musterd.pytest_plugin"}
