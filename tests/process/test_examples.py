"""The examples under docs/examples run as they stand, beside a daemon, on PostgreSQL."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import psycopg
import pytest

from tests.fix_postgres import FreshDatabase
from tests.support.command import Home, eventually, free_port
from tests.support.http_client import ask
from tests.support.pages import DOCS, ROOT, blocks

EXAMPLES = DOCS / "examples"
SERVE = {
    "fastapi": ["-m", "hypercorn", "--bind", "127.0.0.1:{port}", "fastapi_shop:app"],
    "flask": ["-m", "flask", "--app", "flask_shop", "run", "-p", "{port}"],
}


@contextmanager
def served(framework: str, home: Home) -> Generator[str]:
    port = free_port()
    command = [sys.executable, *(part.format(port=port) for part in SERVE[framework])]
    environ = home.environ() | {"SHOP_DATABASE_URL": home.store_url, "PYTHONPATH": str(ROOT)}
    home.folder.mkdir(exist_ok=True)
    with (home.folder / "web.log").open("w") as log:
        process = subprocess.Popen(command, cwd=EXAMPLES, env=environ, stdout=log, stderr=log)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def answers(address: str) -> bool:
    try:
        return ask(address, "/receipts/0").status == 404
    except OSError:
        return False


@pytest.mark.parametrize("framework", SERVE)
def test_a_shop_and_its_receipts(framework: str, home: Home, fresh_database: FreshDatabase) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is missing: make .venv/dev.stamp installs it")
    machine = Home(home.folder, fresh_database())
    assert machine.call("db", "migrate").code == 0
    with psycopg.connect(machine.store_url) as connection:
        (created,) = re.findall(r"-c '(create table [^']+)'", (EXAMPLES / "README.md").read_text())
        connection.execute(created.encode())
    catalog = ("--set", f'catalog.paths=["{EXAMPLES / "kinds.toml"}"]')
    with machine.daemon(*catalog), served(framework, machine) as address:
        log = machine.folder / "web.log"
        try:
            eventually(lambda: answers(address))
        except AssertionError:
            pytest.fail(log.read_text())
        made = [order(address, f"{number}@example.com") for number in range(3)]
        assert [one["order"] for one in made] == [1, 2, 3]
        for number, one in enumerate(made):
            answer = ask(address, f"/receipts/{one['job']}")
            found = json.loads(answer.body)
            assert (answer.status, found) == (
                200,
                {"state": "succeeded", "result": {"sent_to": f"{number}@example.com"}},
            )
        assert "Traceback" not in log.read_text()
        assert "blocks" not in log.read_text(), "a blocking client on an event loop"


def order(address: str, customer: str) -> Any:
    body = json.dumps({"customer": customer}).encode()
    headers = {"content-type": "application/json"}
    answer = ask(address, "/orders", headers, method="POST", body=body)
    assert answer.status == 201, answer.body
    return json.loads(answer.body)


@pytest.mark.parametrize("language", ["js", "go", "ruby"])
def test_what_other_languages_send_is_taken(
    language: str, home: Home, fresh_database: FreshDatabase
) -> None:
    """The statement as it stands: the drivers of these languages are not here."""
    machine = Home(home.folder, fresh_database())
    assert machine.call("db", "migrate").code == 0
    (block,) = blocks((EXAMPLES / "README.md").read_text(), language)
    (statement,) = re.findall(r'"(select musterd\.[^"]+)"', block.text)
    options: dict[str, Any] = {"js": "receipt-1", "go": 30.0, "ruby": 5}
    with psycopg.connect(machine.store_url) as connection:
        cursor = psycopg.RawCursor(connection)
        assert cursor.execute(statement.encode(), ["{}", options[language]]).fetchone() == (1,)


def test_every_file_is_named_on_the_page() -> None:
    page = (EXAMPLES / "README.md").read_text()
    files = {each.name for each in EXAMPLES.iterdir() if each.suffix in (".py", ".toml")}
    assert {name for name in files if f"]({name})" not in page} == set()
