"""The schemas for editors agree with what the daemon reads: shipped files, and files at fault."""

from pathlib import Path
from typing import Any

import pytest
import tomli
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no types

from musterd.catalog.schema import catalog_schema
from musterd.config.schema import settings_schema
from musterd.config.settings import keys
from tests.support.pages import ROOT

SETTINGS = Draft202012Validator(settings_schema())
CATALOG = Draft202012Validator(catalog_schema())
FILES = sorted(
    path
    for pattern in ("config/*.toml", "catalog/*.toml", "deploy/**/*.toml", "docs/**/*.toml",
        "tests/process/user/*.toml", "tests/faults/user/*.toml")
    for path in ROOT.glob(pattern)
    if "grafana" not in path.parts
)  # fmt: skip
BAD = sorted((ROOT / "tests" / "configs").glob("bad.*.toml"))
# What must hold between keys, or within a text, is no matter of a schema.
BEYOND_SCHEMAS = {
    "bad.rules", "bad.syntax", "bad.catalog.real", "bad.http_tokens", "bad.short_token",
    "bad.tokens",
}  # fmt: skip


def faults(text: str) -> list[str]:
    data: dict[str, Any] = tomli.loads(text)
    checked: Any = CATALOG if "kinds" in data else SETTINGS
    return [f"{error.json_path}: {error.message}" for error in checked.iter_errors(data)]


def test_the_schemas_are_schemas() -> None:
    for schema in (SETTINGS.schema, CATALOG.schema):
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_shipped_file_is_valid(path: Path) -> None:
    assert faults(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_files_at_fault_are_not(path: Path) -> None:
    if path.stem not in BEYOND_SCHEMAS:
        assert faults(path.read_text("utf-8"))


def test_each_key_says_what_it_is_and_its_default() -> None:
    tables = settings_schema()["properties"]
    for name in keys():
        section, _, key = name.partition(".")
        assert {"description", "default"} <= tables[section]["properties"][key].keys(), name


@pytest.mark.parametrize(
    "text",
    [
        "[workers]\nmax_cuont = 3",
        "[workers]\nmax_count = 0",
        '[workers]\nmax_count = "8"',
        "[leases]\nheartbeat_seconds = 0.001",
        '[scaling]\npolicy = "deep"',
        "[tenants.acme.workers]\nmax_count = true",
        "[schedules.a]\nevery = 7",
        '[[http.tokens]]\nname = "a"',
        "[kinds.a]\nduration_ms = [1, 2, 3]",
        '[kinds.a]\npython = "shop.images"',
        '[kinds.a.http]\nmethod = "POST"',
        "[kinds.a.retry]\nmax_retries = -1",
        "[[kinds.a.phases]]\nduration_ms = 1",
        '[kinds."2a"]\nduration_ms = 1',
    ],
)
def test_what_is_wrong_is_seen_while_it_is_typed(text: str) -> None:
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "[leases]\nheartbeat_seconds = 0",
        '[webhooks]\nsecret = ["whsec_a", "whsec_b"]',
        "[tenants.acme]\nschema = 'x'\n[tenants.acme.limits]\nmax_running = 3",
        "[schedules.a]\nkind = 'report'\npayload = {a = [1]}",
        "[kinds.a]\nduration_ms = [1, 2]\nbudgets = {tokens = 5}",
        "[kinds.a]\ncommand = ['true']\nrlimits = {nofile = 64}",
    ],
)
def test_what_is_right_is_not_complained_of(text: str) -> None:
    assert faults(text) == []
