"""What `config show` says is what holds, with secrets masked."""

import json
from pathlib import Path

import tomli
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.load import SHIPPED_FILE, Loaded, load
from musterd.config.show import as_text, as_tree, count_changed
from musterd.config.toml_text import toml_text

ABSENT = Path("/nonexistent/musterd.toml")


def loaded(*sets: str, file: Path | None = None) -> Loaded:
    return load(file, {}, sets, ABSENT)


def test_the_tree_of_the_defaults_is_the_shipped_file() -> None:
    shipped = tomli.loads(SHIPPED_FILE.read_text())
    tree = as_tree(loaded(), origin=False)
    assert tree == shipped
    assert json.loads(json.dumps(tree)) == shipped


def test_a_whole_number_is_shown_as_one() -> None:
    tree = as_tree(loaded("workers.lease_timeout_seconds=60.0"), origin=False)
    assert repr(tree["workers"]["lease_timeout_seconds"]) == "60"


def test_with_origin_each_leaf_says_where_from() -> None:
    tree = as_tree(loaded("workers.max_count=9"), origin=True)
    assert tree["workers"]["max_count"] == {"value": 9, "origin": "--set"}
    assert tree["workers"]["default_count"] == {"value": 2, "origin": "default"}


def test_the_text_is_toml_that_loads_to_the_same_settings(tmp_path: Path) -> None:
    first = loaded("workers.max_count=9", "retry.factor=1.5", f"catalog.paths=['{tmp_path}']")
    for origin in (False, True):
        file = tmp_path / "shown.toml"
        file.write_text(as_text(first, origin))
        assert loaded(file=file).settings == first.settings


def test_the_text_names_the_origin_after_each_key(tmp_path: Path) -> None:
    file = tmp_path / "a\nb.toml"
    file.write_text("log.level = 'debug'\n")
    text = as_text(loaded("workers.max_count=9", file=file), origin=True)
    assert text.startswith("[workers]\ndefault_count = 2  # default\nmax_count = 9  # --set\n")
    assert f'level = "debug"  # {tmp_path}/a?b.toml:1\n' in text
    assert "#" not in as_text(loaded(), origin=False)


def test_secrets_are_masked_in_every_form() -> None:
    url = "postgresql://u:hidden@h/d?password=hidden"
    shown = loaded(f"store.url={url}", f"store.listen_url={url}", "http.token=hidden")
    for origin in (False, True):
        said = as_text(shown, origin) + json.dumps(as_tree(shown, origin))
        assert "hidden" not in said
        assert "postgresql://u:***@h/d" in said


@given(st.text() | st.lists(st.text() | st.floats(allow_nan=False) | st.integers() | st.booleans()))
def test_what_is_written_as_toml_reads_back(value: object) -> None:
    assert tomli.loads(f"v = {toml_text(value)}") == {"v": value}


def test_a_setting_counts_as_changed_if_its_value_is_another(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text(
        "[workers]\ndefault_count = 2\nmax_count = 9\n[tenants.acme.workers]\nmax_count = 8\n"
    )
    assert count_changed(loaded()) == 0
    assert count_changed(loaded("workers.max_count=8", file=file)) == 1  # the tenant's
    assert count_changed(loaded("log.level=debug", file=file)) == 3
