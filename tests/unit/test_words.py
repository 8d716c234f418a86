"""One word, one meaning: names in product code use the words of docs/glossary.md, no retired ones.

A name is that of a module, class, function, parameter, variable or field, or of an object in SQL:
table, view, function, trigger, index, file, or a named part of a query. Its words are compared one
by one, so `job_counters` is fine and `tallies` is not.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.pages import page, table
from tests.test_house import SHIPPED, SQL, name_of, tree_of

# The retired word, and the words to use for it.
RETIRED = {
    "announcer": "event writer",
    "announcing": "event writer",
    "appetite": "claim pacing",
    "board": "job list, overview",
    "boards": "job lists, dashboards",
    "carrier": "exchange loop",
    "census": "tenant counts",
    "chronicle": "node events",
    "dice": "rng",
    "errand": "batch",
    "errands": "batches",
    "facet": "instrumented part",
    "facets": "instrumented part",
    "glance": "tenant activity",
    "headcount": "tenant limits",
    "looking": "index walk, queue scan",
    "lookout": "idle tenant scan",
    "outlook": "idle check",
    "retune": "read settings live",
    "sight": "tenant activity",
    "standing": "why facts",
    "stride": "progress",
    "strides": "progress",
    "tallies": "job counters",
    "tell": "log, record, publish, emit",
    "teller": "recorder, reporter",
    "telling": "reporter",
    "tells": "log, record, publish, emit",
    "told": "logged, recorded, published; params",
    "vigil": "idle mode",
    "vital": "store health, liveness",
    "vitals": "store health, liveness",
}

# Names that hold a retired word in another sense: (name, why).
IN_ANOTHER_SENSE: tuple[tuple[str, str], ...] = ()

# Class names that say nothing by themselves.
RETIRED_CLASSES = {"Asked", "News", "Place", "Refused", "Room", "Seen", "Way", "Wish"}

WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
SQL_NAME = re.compile(
    r"\b(?:table|view|function|trigger|index|type|sequence|domain)\s+(?:if\s+not\s+exists\s+)?"
    r"(?:\w+\.)?([a-z_]\w*)"
    r"|\b([a-z_]\w*)\s*(?:\([^()]*\)\s*)?as\s+(?:not\s+)?(?:materialized\s*)?\(",
    re.IGNORECASE,
)


def words_in(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


@cache
def names_of(path: Path) -> frozenset[str]:
    """Every name that the file gives to something, its own among them."""
    return frozenset([path.stem, *(in_sql(path) if path.suffix == ".sql" else in_python(path))])


def in_python(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr
            case ast.alias(asname=str(name)):
                yield name
            case _:
                pass


def in_sql(path: Path) -> Iterator[str]:
    text = re.sub(r"--.*", "", path.read_text("utf-8"))
    for found in SQL_NAME.finditer(text):
        yield found[1] or found[2]


@pytest.mark.parametrize("word", RETIRED)
def test_no_name_holds_a_retired_word(word: str) -> None:
    allowed = {name for name, _why in IN_ANOTHER_SENSE}
    found = [
        f"{name_of(path)}: {name}: say {RETIRED[word]}"
        for path in [*SHIPPED, *SQL]
        for name in sorted(names_of(path) - allowed)
        if word in words_in(name)
    ]
    assert not found, "\n" + "\n".join(found)


def test_a_class_name_says_what_it_is() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}: class {node.name}"
        for path in SHIPPED
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and node.name.lstrip("_") in RETIRED_CLASSES
    ]
    assert not found, "\n" + "\n".join(found)


def test_no_exception_is_left_over() -> None:
    given = {name for path in [*SHIPPED, *SQL] for name in names_of(path)}
    assert [name for name, _why in IN_ANOTHER_SENSE if name not in given] == []


def test_names_are_taken_apart_into_words() -> None:
    assert words_in("HTTPBoardJob") == {"http", "board", "job"}
    assert words_in("_told_at_2") == {"told", "at"}


def test_names_in_sql_are_found(tmp_path: Path) -> None:
    file = tmp_path / "board_view.sql"
    file.write_text(
        "-- board: a comment gives no name\n"
        "create table if not exists x.boards (id int);\n"
        "create function told() returns int as $$ with tally as materialized (select 1),\n"
        "sight(a, b) as (select 1, 2) select 1 $$ language sql;\n"
    )
    assert names_of(file) == {"board_view", "boards", "told", "tally", "sight"}


def test_the_glossary_is_in_order_and_uses_no_retired_word() -> None:
    rows = table(page("glossary.md"), "word", "means")
    words = [word.strip("*").lower() for word, _ in rows]
    assert words == sorted(set(words))
    text = page("glossary.md").lower()
    assert [word for word in RETIRED if re.search(rf"\b{word}\b", text)] == []
