"""The page on configuration is true: its reference, its examples, its rules."""

from pathlib import Path
from typing import get_args

import pytest

from musterd.config.changes import applies
from musterd.config.constraints import CONSTRAINTS
from musterd.config.load import SHIPPED_FILE, UnsoundSettings, load
from musterd.config.settings import keys
from musterd.config.validators import When
from tests.support.pages import Block, bare, blocks, codes, page, table
from tests.support.settings_table import commented, renewed

PAGE = page("configuration.md")
NO_FILE = Path("no-such-file.toml")
SETTINGS = [
    pytest.param(block, id=f"{name}:{block.line}")
    for name in ("configuration.md", "running.md")
    for block in blocks(page(name), "toml")
]


def test_the_reference_is_that_of_the_shipped_settings() -> None:
    assert renewed(PAGE) == PAGE, "run `make reference`"


def test_the_shipped_file_says_of_each_key_what_is_declared() -> None:
    text = SHIPPED_FILE.read_text("utf-8")
    assert commented(text) == text, "run `make reference`"


def test_every_key_has_a_line_with_its_default(tmp_path: Path) -> None:
    lines: list[str] = []
    for text in PAGE.partition("<!-- settings: begin")[2].split("### `[")[1:]:
        section = text.partition("]")[0]
        rows = table(text, "key", "default")
        lines += [f"{section}.{bare(key)} = {bare(default)}" for key, default, *_ in rows]
    assert [line.partition(" = ")[0] for line in lines] == list(keys())
    file = tmp_path / "told.toml"
    file.write_text("\n".join(lines))
    assert load(file, {}, []).settings == load(None, {}, [], NO_FILE).settings


@pytest.mark.parametrize("block", SETTINGS)
def test_an_example_loads(block: Block, tmp_path: Path) -> None:
    (tmp_path / "kinds.d").mkdir()
    file = tmp_path / "musterd.toml"
    file.write_text(block.text)
    load(file, {}, [])


def test_every_moment_at_which_a_key_applies_is_told() -> None:
    told = [
        bare(when)
        for when, _ in table(PAGE, "reload", "from when a running node uses the new value")
    ]
    assert told == list(get_args(When))


def test_what_needs_a_restart_is_said_to_need_one() -> None:
    """The decision gives the reasons; a whole table stands for its keys."""
    text = page("decisions/0030-a-reload-is-taken-whole.md")
    named = {code.strip("[]") for row in table(text, "key", "why") for code in codes(row[0])}
    waiting = {key for key in keys() if applies(key) == "restart"}
    assert {key for key in waiting if not {key, key.partition(".")[0]} & named} == set()


def test_every_rule_between_keys_is_told() -> None:
    assert len(table(PAGE, "what must hold", "why")) == len(CONSTRAINTS)


def test_the_faults_shown_are_those_that_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = next(block.text for block in blocks(PAGE, "console") if "faults" in block.text)
    Path("bad.toml").write_text('[workers]\ndefault_cout = 4\nmax_count = "8"\n')
    sets = ["workers.lease_timeout_seconds=2", "leases.heartbeat_seconds=1.5"]
    with pytest.raises(UnsoundSettings) as caught:
        load(Path("bad.toml"), {"MUSTERD_LOG__LEVL": "debug"}, sets)
    assert [line.strip() for line in shown.splitlines()[2:]] == str(caught.value).splitlines()
