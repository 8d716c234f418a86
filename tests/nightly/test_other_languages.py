"""The samples of docs/examples for other languages, run by those languages with the drivers that
they name, fetched for the occasion. Skipped is what is not on this machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs
import psycopg
import pytest

from tests.fix_postgres import FreshDatabase
from tests.support.command import Home
from tests.support.pages import DOCS, blocks

PAGE = DOCS / "examples" / "README.md"
FETCH_SECONDS, RUN_SECONDS = 300, 120

JS = """\
const { Client } = require("pg")
async function main() {
const client = new Client({ connectionString: process.argv[2] })
await client.connect()
const customer = "you@example.com"
%s
console.log(job.rows[0].id)
await client.end()
}
main()
"""
GO = """\
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Args[1])
%s
	if err != nil {
		panic(err)
	}
	fmt.Println(job)
}
"""
RUBY = """\
require "pg"
connection = PG.connect(ARGV[0])
job = nil
%s
puts job
"""


@attrs.frozen
class Language:
    """`around`: what a sample stands in. `fetch` is done where `has_driver` fails."""

    file: str
    around: str
    has_driver: Sequence[str]
    fetch: Sequence[Sequence[str]]
    run: Sequence[str]
    job: dict[str, object]  # what the sample asks for


LANGUAGES = {
    "js": Language(
        "sample.cjs", JS, ("node", "-e", "require('pg')"),
        [("npm", "install", "--no-audit", "--no-fund", "pg")], ("node", "sample.cjs"),
        {"dedup_key": "receipt-1", "payload": {"order": "1", "customer": "you@example.com"}},
    ),
    "go": Language(
        "sample.go", GO, ("false",),
        [("go", "mod", "init", "sample"), ("go", "get", "github.com/jackc/pgx/v5")],
        ("go", "run", "sample.go"), {"payload": {"order": 17}},
    ),
    "ruby": Language(
        "sample.rb", RUBY, ("ruby", "-e", "require 'pg'"),
        [("gem", "install", "--user-install", "--no-document", "pg")], ("ruby", "sample.rb"),
        {"priority": 5, "payload": {"order": 17}},
    ),
}  # fmt: skip


def call(command: Sequence[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
    )


def prepare(language: Language, folder: Path) -> None:
    """Skips where the language or its driver cannot be had."""
    program = language.run[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    if call(language.has_driver, folder, RUN_SECONDS).returncode == 0:
        return
    for step in language.fetch:
        done = call(step, folder, FETCH_SECONDS)
        if done.returncode != 0:
            pytest.skip(f"its driver cannot be fetched: {done.stderr[-300:]}")


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_sample_makes_its_job_with_the_row_beside_it(
    name: str, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    language = LANGUAGES[name]
    prepare(language, tmp_path)
    (block,) = blocks(PAGE.read_text(), name)
    (tmp_path / language.file).write_text(language.around % block.text)
    machine = Home(tmp_path / "state", fresh_database())
    assert machine.call("db", "migrate").code == 0
    with psycopg.connect(machine.store_url) as connection:
        (created,) = re.findall(r"-c '(create table [^']+)'", PAGE.read_text())
        connection.execute(created.encode())
    done = call([*language.run, machine.store_url], tmp_path, RUN_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    job = machine.job(int(done.stdout))
    assert (job["kind"], job["state"]) == ("receipt", "queued")
    assert {key: job[key] for key in language.job} == language.job
