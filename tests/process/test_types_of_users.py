"""What type checkers say of a user's own file: a task is called and enqueued with its function's
arguments, and both clients have types. Each wrong line is found, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
from musterd import AsyncClient, Client, JobContext, task


@task(retryable=True)
def thumbnail(image: int, width: int = 100) -> str:
    return f"{image}@{width}"


@task(takes_job=True)
async def mail(job: JobContext, to: str) -> None:
    job.log(to)


def order(client: Client) -> int:
    made: int = thumbnail.enqueue(client, 17, width=200)
    thumbnail.using(priority=5).enqueue(client, image=17)
    said: str = thumbnail(17)
    client.enqueue("report", {"said": said}, priority=3)
    client.enqueue_many([("report", {}), {"kind": "report"}, thumbnail.job(17)])
    return client.wait(made, timeout=5)["id"] or mail.enqueue(client, to="a@example.com")


async def order_async(client: AsyncClient) -> int:
    return await thumbnail.enqueue(client, 17)


def mistaken(client: Client) -> None:
    thumbnail.enqueue(client, "seventeen")  # WRONG
    thumbnail.enqueue(client, 17, height=200)  # WRONG
    thumbnail.enqueue(client)  # WRONG
    mail.enqueue(client, to=17)  # WRONG
    made: str = client.enqueue("report")  # WRONG
    client.enqueue(17)  # WRONG
    client.enqeue("report")  # WRONG
    print(made)
"""


def by_mypy(file: Path) -> set[int]:
    words = ["-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(file)]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=file.parent, env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {int(line) for line in re.findall(r"user\.py:(\d+): error", done.stdout)}


def by_pyright(file: Path) -> set[int]:
    about = {"include": ["user.py"], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    (file.parent / "pyrightconfig.json").write_text(json.dumps(about))
    # With the node of its wheel, and without a look for newer versions of itself.
    around = {"PYRIGHT_PYTHON_GLOBAL_NODE": "0", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("pyright")), "--outputjson",
            "--pythonpath", sys.executable],
        cwd=file.parent, env={**os.environ, **around}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {1 + one["range"]["start"]["line"] for one in found if one["severity"] == "error"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_wrong_calls_are_found_and_no_others(
    tmp_path: Path, check: Callable[[Path], set[int]]
) -> None:
    file = tmp_path / "user.py"
    file.write_text(PROGRAM)
    wrong = {number for number, line in enumerate(PROGRAM.split("\n"), 1) if "# WRONG" in line}
    assert check(file) == wrong
