"""Functions with `@task`, run by a daemon that reads `[catalog] modules`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from musterd import Client
from tests.support.command import Home, eventually

TASKS = """
import threading
from musterd import task


@task
def double(number: int) -> int:
    return number * 2


@task(kind="mail-it", takes_job=True)
async def mail(job, to: str) -> str:
    job.log("mailing")
    return to


@task(isolation="thread")
def in_thread(number: int) -> str:
    return threading.current_thread().name


@task(isolation="task")
async def in_task(number: int) -> int:
    import trio

    await trio.sleep(0)
    return number
"""


@pytest.fixture
def shop(home: Home) -> Path:
    folder = home.folder / "code" / "shop_of_tasks"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "tasks.py").write_text(TASKS)
    return folder


def test_tasks_run_in_every_isolation_and_a_reload_finds_new_ones(home: Home, shop: Path) -> None:
    sets = (
        *("--set", 'catalog.modules=["shop_of_tasks.tasks"]'),
        *("--set", f'catalog.python_path=["{shop.parent}"]'),
    )
    assert home.call("config", "check", *sets).code == 0
    asked = [
        ("double", '{"number": 21}', 42),
        ("mail-it", '{"to": "you"}', "you"),
        ("in_task", '{"number": 3}', 3),
    ]
    with home.daemon(*sets) as daemon:
        daemon.wait_until_ready()
        for kind, payload, result in asked:
            done = home.call("enqueue", kind, "--payload", payload, "--wait", "--json", *sets)
            assert (done.code, done.json["result"]) == (0, result), done.err
        done = home.call(
            "enqueue", "in_thread", "--payload", '{"number": 1}', "--wait", "--json", *sets
        )
        assert done.json["state"] == "succeeded", done.err
        done = home.call("enqueue", "double", "--payload", "[1]", "--wait", "--json", *sets)
        assert (done.code, done.json["attempt"]) == (1, 1)
        assert "wanted the arguments of shop_of_tasks.tasks:double by name" in done.out
        with (shop / "tasks.py").open("a") as file:
            file.write("\n@task\ndef triple(number: int) -> int:\n    return number * 3\n")
        daemon.send(signal.SIGHUP)
        with Client(f"sqlite:///{home.folder.resolve()}/musterd.db") as client:
            job_id = client.enqueue("triple", {"number": 2})
            assert client.wait(job_id, 30)["result"] == 6
        (shop / "tasks.py").write_text("x = 1 / 0\n")
        daemon.send(signal.SIGHUP)
        line = daemon.wait_for_line("cannot import shop_of_tasks.tasks")
        assert "tasks.py:1" in line
        eventually(lambda: home.call("enqueue", "report", "--wait").code == 0)
