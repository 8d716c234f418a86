"""Where the queue lives, by settings, files and environment."""

from pathlib import Path

import pytest

from musterd.config.credentials import resolve_http_token
from musterd.config.faults import ConfigError, Unfit
from musterd.config.load import load, resolve_store_url, state_directory
from musterd.config.settings import Settings
from musterd.config.validators import STORE_SCHEMES, check_url
from musterd.store.embedded import sqlite_path

ABSENT = Path("/nonexistent/musterd.toml")


def settings(*sets: str, **environ: str) -> Settings:
    return load(None, environ, sets, ABSENT).settings


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"STATE_DIRECTORY": "/var/lib/musterd", "XDG_STATE_HOME": "/x"}, "/var/lib/musterd"),
        ({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "/var/lib/a"),
        ({"XDG_STATE_HOME": "/x/state", "HOME": "/users/u"}, "/x/state/musterd"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/users/u"}, "/users/u/.local/state/musterd"),
        ({"STATE_DIRECTORY": "", "HOME": "/users/u"}, "/users/u/.local/state/musterd"),
    ],
)
def test_the_state_directory_is_systemds_or_the_users(environ: dict[str, str], folder: str) -> None:
    assert state_directory(environ) == Path(folder)


def test_without_a_url_the_store_is_embedded_whatever_pg_variables_say() -> None:
    environ = {"HOME": "/users/u", "PGHOST": "db", "PGDATABASE": "d", "PGSERVICE": "s"}
    url = resolve_store_url(settings(), environ)
    assert url == "sqlite:////users/u/.local/state/musterd/musterd.db"
    assert sqlite_path(url) == Path("/users/u/.local/state/musterd/musterd.db")


def test_a_sqlite_url_names_a_relative_or_an_absolute_path() -> None:
    assert sqlite_path("sqlite:///a/b%20c.db") == Path("a/b%20c.db")
    assert sqlite_path("sqlite:////a/b.db") == Path("/a/b.db")
    with pytest.raises(ValueError, match=r"not a SQLite URL: postgresql://u:\*\*\*@h"):
        sqlite_path("postgresql://u:p@h")


def test_a_url_is_taken_as_it_stands() -> None:
    url = "postgresql://u:p@h1,h2/d?target_session_attrs=read-write"
    assert resolve_store_url(settings(f"store.url={url}"), {}) == url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@h1:5432,h2:5433/d",
        "postgresql://u:p@h1,h2/d?target_session_attrs=read-write&load_balance_hosts=random",
        "postgresql://u:p@h1,h2/d?target_session_attrs=primary",
        "postgresql://u:p@h/d?target_session_attrs=any",
    ],
)
def test_a_url_may_name_several_hosts(url: str) -> None:
    check_url(url, STORE_SCHEMES)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@h1,h2/d?target_session_attrs=any",
        "postgresql://u:p@h1,h2/d?connect_timeout=3&target_session_attrs=prefer-standby",
        "postgresql://h/d?target_session_attrs=read-only",
        "postgres://h/d?target_session_attrs=standby",
    ],
)
def test_a_url_that_leads_to_a_standby_is_refused(url: str) -> None:
    with pytest.raises(Unfit, match="target_session_attrs=read-write") as refused:
        check_url(url, STORE_SCHEMES)
    assert "a standby takes no writes" in refused.value.hint


def test_a_url_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://u:p@h/d\n")
    assert (
        resolve_store_url(settings(f"store.url_file={tmp_path}/url"), {}) == "postgresql://u:p@h/d"
    )


def test_a_bare_name_is_a_credential_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "store-url").write_text("postgres://h/d")
    (tmp_path / "token").write_text("secret\n")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    given = settings("store.url_file=store-url", "http.token_file=token", **environ)
    assert given.store.url_file == "store-url"
    assert resolve_store_url(given, environ) == "postgres://h/d"
    assert resolve_http_token(given, environ) == "secret"


def test_a_bare_name_that_is_no_credential_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "url").write_text("postgres://h/d")
    monkeypatch.chdir(tmp_path)
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path / "none")}
    assert resolve_store_url(settings("store.url_file=url", **environ), environ) == "postgres://h/d"


def test_a_token_may_stand_in_the_settings() -> None:
    assert resolve_http_token(settings("http.token=t"), {}) == "t"
    assert resolve_http_token(settings(), {}) == ""


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "store.url_file: cannot be read: No such file or directory"),
        (b"\n \n", "store.url_file: found nothing, wanted one line of text"),
        (b"a\nb", "store.url_file: found more than one line, wanted one line of text"),
        (b"\xff", "store.url_file: not UTF-8"),
        (
            b"mysql://u:hidden@h/d",
            (
                'store.url_file: found "mysql://u:***@h/d",'
                " wanted sqlite:///path or postgresql://user@host/database"
            ),
        ),
    ],
)
def test_a_file_that_holds_no_url_is_a_fault(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        resolve_store_url(settings(f"store.url_file={file}"), {})
    assert str(refused.value) == f"{file}: {complaint}"


@pytest.mark.parametrize("schema", ["pg_catalog", "pg_jobs", "information_schema", "public"])
def test_schemas_that_are_not_ours_are_refused(schema: str) -> None:
    with pytest.raises(ConfigError, match="a schema of musterd's own"):
        settings(f"store.schema={schema}")
