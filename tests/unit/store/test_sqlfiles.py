"""Statements come from files by topic; a part of one may be left out."""

from pathlib import Path

import pytest

from musterd.store.sqlfiles import load_statements, split

ROOT = Path(__file__).resolve().parents[3]
ENGINES = ("postgres", "sqlite")

TEXT = """-- What the file is about: a few words.

-- one: does something
-- Note: this is no beginning, and neither is the next line.
select '
-- NO: beginning'

-- part shared: what two have in common
where true

-- two: does more
select 2 {shared}
"""


def test_a_file_is_split_into_its_statements() -> None:
    pieces = list(split(TEXT))
    assert [(is_part, name) for is_part, name, _ in pieces] == [
        (False, "one"), (True, "shared"), (False, "two"),
    ]  # fmt: skip
    assert pieces[0][2].startswith("-- one: does something\n-- Note: this")
    assert pieces[0][2].endswith("beginning'")
    assert pieces[2][2] == "-- two: does more\nselect 2 {shared}"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_statement_says_what_it_promises_and_is_sent(engine: str) -> None:
    folder = ROOT / "store" / engine
    modules = "".join(path.read_text() for path in folder.glob("*.py"))
    for path in (folder / "sql").glob("*.sql"):
        for is_part, name, text in split(path.read_text()):
            promise = text.partition("\n")[0].partition(": ")[2]
            assert len(promise) > 8, name
            last = name.rpartition("_")[2]  # pause_schedule is sent as f"{verb}_schedule"
            uses = (f'"{name}"', f'}}_{last}"')
            assert is_part or any(use in modules for use in uses), name


def test_what_several_have_in_common_is_in_each() -> None:
    statements = load_statements("musterd.store.postgres")
    assert "levels" not in statements
    for name in ("claim_with_limits", "claim_targets", "observe", "next_due", "not_yet_due"):
        assert statements[name].count("ladder (priority) as (") == 1
        assert "{levels}" not in statements[name]


def test_a_statement_is_sent_with_its_name_and_without_comments() -> None:
    for text in load_statements("musterd.store.postgres").values():
        first, *lines = text.splitlines()
        assert first.startswith("-- ")
        assert not [line for line in lines if line.lstrip().startswith("--")]


def test_a_claim_pays_for_no_limits_that_it_has_not() -> None:
    statements = load_statements("musterd.store.postgres")
    for name in ("%(most)s", "%(caps)s", "%(mark_ids)s"):
        assert name in statements["claim_with_limits"]
        assert name not in statements["claim"]
