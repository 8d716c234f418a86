"""Pages for those who come from other queues: what they name of musterd is there."""

from __future__ import annotations

import ast
import re

import attrs
import pytest

import musterd
from musterd import Client
from musterd.catalog.tables import KindTable
from musterd.config.job_options import NAMES
from musterd.config.settings import Retry, keys
from musterd.console.command import SECTIONS
from tests.support.pages import DOCS, blocks, codes, page, table

NAMES_OF_PAGES = sorted(path.name for path in (DOCS / "coming-from").glob("*.md"))
VERBS = {verb for section in SECTIONS.values() for verb in section}
KIND_KEYS = {field.name for field in attrs.fields(KindTable)}
RETRY_KEYS = {field.name for field in attrs.fields(Retry)}
OURS = {*NAMES, *KIND_KEYS, *RETRY_KEYS, "connection", "timeout", "takes_job", "in_seconds"}


def said(name: str) -> list[str]:
    """Each piece of code that is musterd's, of the table's second column."""
    text = page(f"coming-from/{name}")
    (first, _) = re.findall(r"^\| (\S+) \| (musterd) \|$", text, re.MULTILINE)[0]
    return [code for row in table(text, first, "musterd") for code in codes(row[1])]


@pytest.mark.parametrize("name", NAMES_OF_PAGES)
def test_options_keys_verbs_and_methods_are_there(name: str) -> None:
    found = said(name)
    assert len(found) > 10
    # What a task's own function takes is the user's.
    text = re.sub(r"\.enqueue\(client[^)]*\)", "", "\n".join(found))
    words = {
        *re.findall(r"\b([a-z_]+)=(?!=)", text),
        *re.findall(r"\b([a-z_]+) =>? ?", text),
    }
    assert words <= OURS, words - OURS
    assert set(re.findall(r"\bmusterd ([a-z]+)\b", text)) <= VERBS
    assert all(hasattr(Client, one) for one in re.findall(r"\bclient\.([a-z_]+)\(", text))
    assert all(hasattr(musterd, one) for one in re.findall(r"\braise ([A-Z]\w+)", text))
    dotted = {one for one in found if re.fullmatch(r"(workers|scaling|shutdown|limits)\.\w+", one)}
    assert dotted <= set(keys())


@pytest.mark.parametrize("name", NAMES_OF_PAGES)
def test_the_code_is_code(name: str) -> None:
    for block in blocks(page(f"coming-from/{name}"), "python"):
        ast.parse(block.text)
