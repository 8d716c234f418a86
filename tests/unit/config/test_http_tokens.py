"""Tokens with scopes: where they stand, what is shown of them, which one our own verbs take."""

from pathlib import Path

import pytest

from musterd.config.credentials import resolve_http_token, resolve_http_tokens
from musterd.config.faults import ConfigError
from musterd.config.load import Loaded, load
from musterd.config.show import as_text, as_tree

ABSENT = Path("/nonexistent/musterd.toml")
FILE = """
[http]
listen = "0.0.0.0:9477"

[[http.tokens]]
name = "board"
token_file = "board.token"
scopes = ["read"]

[[http.tokens]]
name = "shop"
token_file = "/etc/shop.token"
scopes = ["enqueue", "read"]
"""


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    file = tmp_path / "musterd.toml"
    file.write_text(FILE)
    return load(file, {}, [], ABSENT)


def given(folder: Path, **tokens: str) -> list[str]:
    """A `--set` that names a file for each token; the name is that of its one scope."""
    tables: list[str] = []
    for scope, token in tokens.items():
        (folder / scope).write_text(token)
        place = folder / scope
        tables.append(f'{{name = "{scope}", token_file = "{place}", scopes = ["{scope}"]}}')
    return [f"http.tokens=[{', '.join(tables)}]"]


def test_each_table_is_a_token_and_its_file_lies_beside_the_configuration(
    loaded: Loaded, tmp_path: Path
) -> None:
    board, shop = loaded.settings.http.tokens
    assert (board.name, board.scopes) == ("board", ("read",))
    assert board.token_file == str(tmp_path / "board.token")
    assert (shop.token_file, shop.scopes) == ("/etc/shop.token", ("enqueue", "read"))
    assert loaded.origins["http.tokens"] == f"{tmp_path / 'musterd.toml'}:5"


def test_what_is_shown_can_be_read_again(loaded: Loaded, tmp_path: Path) -> None:
    again = tmp_path / "again.toml"
    again.write_text(as_text(loaded, origin=False))
    assert load(again, {}, [], ABSENT).settings == loaded.settings
    tree = as_tree(loaded, origin=False)["http"]["tokens"]
    assert tree == [
        {"name": "board", "token_file": str(tmp_path / "board.token"), "scopes": ["read"]},
        {"name": "shop", "token_file": "/etc/shop.token", "scopes": ["enqueue", "read"]},
    ]


def test_a_bare_name_may_be_a_credential(tmp_path: Path) -> None:
    (tmp_path / "board.token").write_text(f"{'b' * 16}\n")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    (tmp_path / "musterd.toml").write_text(FILE.replace("/etc/shop.token", "board.token2"))
    (tmp_path / "board.token2").write_text("s" * 16)
    settings = load(tmp_path / "musterd.toml", environ, [], ABSENT).settings
    assert settings.http.tokens[0].token_file == "board.token"
    assert [one.secret for one in resolve_http_tokens(settings, environ)] == [
        "b" * 16,
        "s" * 16,
    ]


def test_a_token_opens_a_place_that_all_can_reach(loaded: Loaded) -> None:
    assert loaded.settings.http.listen == "0.0.0.0:9477"


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("5", "http.tokens: found 5, wanted a list"),
        ("[3]", "http.tokens.0: found a number, wanted a table - write [[http.tokens]] above"),
        ("[{}]", "http.tokens.0: found no name, wanted one"),
        (
            '[{name="a",token_file="x",scopes=["read"]},{name="a",token_file="y",scopes=["read"]}]',
            "http.tokens: found a list of tables, wanted a name of its own for each token (a)",
        ),
    ],
)
def test_what_is_no_list_of_tokens_is_refused(value: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, {}, [f"http.tokens={value}"], ABSENT)
    assert complaint in str(refused.value)


def test_files_that_hold_no_token_are_all_named(loaded: Loaded, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve_http_tokens(loaded.settings, {})
    assert [fault.key for fault in refused.value.faults] == [
        "http.tokens.board.token_file",
        "http.tokens.shop.token_file",
    ]


def test_two_holders_of_one_token_are_a_fault_that_does_not_show_it(tmp_path: Path) -> None:
    sets = [*given(tmp_path, read="same", enqueue="same"), "http.token=other"]
    with pytest.raises(ConfigError) as refused:
        resolve_http_tokens(load(None, {}, sets, ABSENT).settings, {})
    assert "the same token as that of read" in str(refused.value)
    assert "found same" not in str(refused.value)


def test_the_one_token_may_do_everything(tmp_path: Path) -> None:
    sets = [*given(tmp_path, read="r"), "http.token=t"]
    first, second = resolve_http_tokens(load(None, {}, sets, ABSENT).settings, {})
    assert (first.secret, first.scopes, second.scopes) == ("t", ("admin",), ("read",))


def test_our_own_verbs_take_the_mightiest(tmp_path: Path) -> None:
    def own(*more: str, **tokens: str) -> str:
        sets = [*given(tmp_path, **tokens), *more]
        return resolve_http_token(load(None, {}, sets, ABSENT).settings, {})

    assert own(enqueue="e", read="r") == "r"
    assert own(read="r", admin="a") == "a"
    assert own("http.token=t", admin="a") == "t"
    assert own() == ""


def test_beyond_loopback_short_tokens_are_refused_and_not_shown(tmp_path: Path) -> None:
    sets = [*given(tmp_path, read="fifteen-letters", metrics="sixteen--letters")]

    def faults(listen: str, *more: str) -> list[tuple[str, str]]:
        try:
            settings = load(None, {}, [*sets, *more, f"http.listen={listen}"], ABSENT).settings
            resolve_http_tokens(settings, {})
        except ConfigError as error:
            return [(fault.key, fault.found) for fault in error.faults]
        return []

    for kept in ("127.0.0.1:9477", "[::1]:1", "unix:/m.sock", ""):
        assert faults(kept, "http.token=short") == []
    assert faults("0.0.0.0:9477") == [("http.tokens.read.token_file", "a shorter token")]
    ((key, found),) = faults("h.example:9477", "http.token=short")
    assert key in ("http.token", "http.listen")
    assert "short" not in found
