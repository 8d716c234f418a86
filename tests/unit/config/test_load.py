"""The layers of the settings, their origins, and what each layer may say."""

from pathlib import Path

import attrs
import pytest

from musterd.config.faults import ConfigError, Fault, Unfit
from musterd.config.load import SHIPPED_FILE, Loaded, load
from musterd.config.settings import Workers, keys

ABSENT = Path("/nonexistent/musterd.toml")


def loaded(*sets: str, file: Path | None = None, **environ: str) -> Loaded:
    return load(file, environ, sets, ABSENT)


def refusal(*sets: str, file: Path | None = None, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        loaded(*sets, file=file, **environ)
    return [str(fault) for fault in refused.value.faults]


def written(folder: Path, text: str, name: str = "musterd.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_the_shipped_file_holds_every_key_with_its_reason() -> None:
    settings = loaded()
    assert set(settings.origins.values()) == {"default"}
    assert settings.settings.workers == Workers(
        default_count=2,
        max_count=8,
        poll_interval_ms=250,
        lease_timeout_seconds=30,
        scale_interval_ms=1000,
    )
    text = SHIPPED_FILE.read_text()
    for name in {key.rpartition(".")[2] for key in keys()} - {"paths"}:
        assert f"\n{name} = " in text
    assert not [line for line in text.splitlines() if " = " in line and not _has_reason(line)]


def _has_reason(line: str) -> bool:
    return "#" in line or "_buckets_seconds" in line


def test_no_setting_has_a_default_in_code() -> None:
    assert all(key.default is attrs.NOTHING for key in keys().values())


def test_later_layers_win_and_are_named(tmp_path: Path) -> None:
    file = written(tmp_path, "[workers]\ndefault_count = 3\nmax_count = 4\npoll_interval_ms = 5\n")
    result = loaded(
        "workers.poll_interval_ms=7",
        file=file,
        MUSTERD_WORKERS__MAX_COUNT="6",
        MUSTERD_WORKERS__POLL_INTERVAL_MS="6",
    )
    workers = result.settings.workers
    assert (workers.default_count, workers.max_count, workers.poll_interval_ms) == (3, 6, 7)
    assert result.origins["workers.default_count"] == f"{file}:2"
    assert result.origins["workers.max_count"] == "env MUSTERD_WORKERS__MAX_COUNT"
    assert result.origins["workers.poll_interval_ms"] == "--set"
    assert result.origins["workers.scale_interval_ms"] == "default"


def test_the_system_file_is_read_unless_another_is_named(tmp_path: Path) -> None:
    system = written(tmp_path, "workers.max_count = 11\n", "system.toml")
    other = written(tmp_path, "workers.default_count = 1\n", "other.toml")
    assert load(None, {}, [], system).settings.workers.max_count == 11
    assert load(other, {}, [], system).settings.workers.max_count == 8


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    assert refusal(file=tmp_path / "x.toml") == [
        f"{tmp_path}/x.toml: cannot be read: No such file or directory"
    ]
    assert refusal(file=tmp_path) == [f"{tmp_path}: cannot be read: Is a directory"]


def test_a_dangling_system_file_is_no_absent_one(tmp_path: Path) -> None:
    link = tmp_path / "musterd.toml"
    link.symlink_to(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(None, {}, [], link)


def test_faults_of_all_layers_are_told_in_one_run(tmp_path: Path) -> None:
    file = written(tmp_path, "[workers]\nmax_cuont = 3\nmax_count = 0\n")
    assert refusal(
        "log.level=loud", "nonsense", "http.listen=x", file=file, MUSTERD_WORKERS__DEFAULT="3"
    ) == [
        f"{file}:2: workers.max_cuont: unknown key - did you mean max_count?",
        f"{file}:3: workers.max_count: found 0, wanted 1 to 10000",
        "env MUSTERD_WORKERS__DEFAULT: workers.default: unknown key - did you mean default_count?",
        '--set: log.level: found "loud", wanted "debug", "info", "warning" or "error"',
        "--set: found nonsense, wanted section.key=value",
        '--set: http.listen: found "x", wanted "host:port", "unix:/path" or ""',
    ]


def test_a_syntax_error_does_not_hide_the_other_layers(tmp_path: Path) -> None:
    file = written(tmp_path, "[workers\n")
    assert refusal("workers.max_count=x", file=file) == [
        f"{file}:1: not TOML: Expected ']' at the end of a table declaration (column 9)",
        '--set: workers.max_count: found "x", wanted a whole number',
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a = 1\nb = '\xff'\n", ":2: not UTF-8 - save the file as UTF-8"),
        (b"a = " + b"[" * 5000, ": not usable: lists or tables are nested too deep"),
        (b"a = " + b"1" * 5000, ": not usable: a number has too many digits"),
    ],
)
def test_a_file_that_breaks_a_parser_is_a_fault(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    file = tmp_path / "musterd.toml"
    file.write_bytes(content)
    assert refusal(file=file) == [f"{file}{complaint}"]


def test_windows_line_ends_count_as_lines(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_bytes(b"[workers]\r\n\r\nmax_count = 0\r\n")
    assert refusal(file=file)[0].startswith(f"{file}:3: workers.max_count")


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("workers.max_count= 9 ", 9),
        ("workers.lease_timeout_seconds=2.5", 2.5),
        ("workers.lease_timeout_seconds=60", 60.0),
        ("store.migrate=false", False),
        ("store.url=postgresql://u:a=b@h/d?x=y", "postgresql://u:a=b@h/d?x=y"),
        ("store.schema=true", "true"),
        ('store.schema="quoted"', "quoted"),
        ("http.token=12345", "12345"),
        ("http.token=", ""),
        ("scaling.policy=depth", "depth"),
        ('scaling.policy="depth"', "depth"),
        ("metrics.run_buckets_seconds=[1, 2.5]", (1.0, 2.5)),
        ("catalog.paths=[]", ()),
    ],
)
def test_text_is_read_by_the_type_of_its_key(assignment: str, value: object) -> None:
    key, _, text = assignment.partition("=")
    section, name = key.split(".")
    variable = f"MUSTERD_{section}__{name}".upper()
    for result in (loaded(assignment), load(None, {variable: text}, [], ABSENT)):
        found = getattr(getattr(result.settings, section), name)
        assert found == value
        assert type(found) is type(value)


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ('workers.max_count="8"', 'found "8", wanted a whole number - write it without the quotes'),
        ("workers.max_count=2.5", "found 2.5, wanted a whole number"),
        ("workers.max_count=true", "found true, wanted a whole number"),
        ("workers.max_count=08", 'found "08", wanted a whole number'),
        ("workers.max_count=", 'found "", wanted a whole number'),
        ("workers.max_count=8\n[x]", 'found "8\\n[x]", wanted a whole number'),
        ("store.migrate=1", "found 1, wanted true or false"),
        ("store.migrate=True", 'found "True", wanted true or false - write it in lower case'),
        ("workers.lease_timeout_seconds=nan", "found nan, wanted a finite number"),
        ("catalog.paths=a.toml", 'found "a.toml", wanted a list - write ["a.toml"]'),
        ("catalog.paths=['']", 'found [""], wanted a list, each element a path'),
        ("http.listen=127.0.0.1:70000", 'found "127.0.0.1:70000", wanted a port of 0 to 65535'),
        ("store.url=sqlite://x", None),
        ("store.url=sqlite:///", None),
    ],
)
def test_text_that_does_not_fit_is_refused(assignment: str, complaint: str | None) -> None:
    key, _, text = assignment.partition("=")
    said = (
        complaint or f'found "{text}", wanted sqlite:///relative/path or sqlite:////absolute/path'
    )
    assert refusal(assignment) == [f"--set: {key}: {said}"]


def test_text_that_is_not_unicode_is_refused() -> None:
    assert refusal(MUSTERD_STORE__SCHEMA="\udcff") == [
        "env MUSTERD_STORE__SCHEMA: store.schema: text that is not UTF-8"
    ]


def test_only_variables_with_two_underscores_are_settings() -> None:
    assert loaded(MUSTERD_DEBUG="1", MUSTER__X="1", OTHER_MUSTERD_A__B="1") == loaded()
    assert refusal(MUSTERD_WROKERS__MAX_COUNT="1") == [
        "env MUSTERD_WROKERS__MAX_COUNT: wrokers: unknown table - did you mean workers?"
    ]
    assert refusal(MUSTERD_WORKERS__="1")[0].startswith(
        'env MUSTERD_WORKERS__: workers."": unknown key - known: default_count, '
    )


def test_a_broken_rule_blames_the_latest_layer(tmp_path: Path) -> None:
    file = written(tmp_path, "[workers]\nmax_count = 5\ndefault_count = 4\n")
    assert refusal("workers.max_count=3", file=file) == [
        (
            "--set: workers.max_count: found 3, wanted default_count <= max_count"
            " (workers.default_count is 4)"
        )
    ]
    assert refusal(MUSTERD_WORKERS__MAX_COUNT="1") == [
        (
            "env MUSTERD_WORKERS__MAX_COUNT: workers.max_count: found 1,"
            " wanted default_count <= max_count (workers.default_count is 2)"
        )
    ]


def test_a_rule_is_not_judged_while_one_of_its_keys_is_at_fault() -> None:
    assert refusal("workers.default_count=9", "workers.max_count=ten") == [
        '--set: workers.max_count: found "ten", wanted a whole number'
    ]


@pytest.mark.parametrize(
    "listen", ["", "unix:/run/m.sock", "[::1]:0", "localhost:1", "127.9.9.9:1"]
)
def test_a_private_place_to_listen_needs_no_token(listen: str) -> None:
    assert loaded(f"http.listen={listen}").settings.http.listen == listen


@pytest.mark.parametrize("listen", ["0.0.0.0:1", "[::]:1", "db.example:80", "192.168.0.1:80"])
def test_an_open_place_to_listen_needs_a_token(listen: str) -> None:
    assert len(refusal(f"http.listen={listen}")) == 1
    assert len(refusal(f"http.listen={listen}", "http.token=fifteen-letters")) == 1
    loaded(f"http.listen={listen}", "http.token=sixteen--letters")
    loaded(f"http.listen={listen}", "http.token_file=t")


@pytest.mark.parametrize("listen", ["unix:m.sock", "unix:", "host", "[::zz]:1", "[:::]:1", "a b:1"])
def test_a_place_to_listen_is_well_formed(listen: str) -> None:
    assert len(refusal(f"http.listen={listen}")) == 1


def test_a_relative_path_starts_at_the_file_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc" / "kinds").mkdir(parents=True)
    (tmp_path / "kinds").mkdir()
    file = written(
        tmp_path / "etc", "store.url_file = 'url'\ncatalog.paths = ['kinds', '../kinds']\n"
    )
    monkeypatch.chdir(tmp_path)
    settings = loaded(file=file).settings
    assert settings.catalog.paths == (tmp_path / "etc" / "kinds", tmp_path / "kinds")
    assert settings.store.url_file == str(tmp_path / "etc" / "url")
    overridden = loaded("catalog.paths=['kinds']", file=file, MUSTERD_STORE__URL_FILE="url")
    assert overridden.settings.catalog.paths == (tmp_path / "kinds",)
    assert overridden.settings.store.url_file == str(tmp_path / "url")


def test_a_named_file_given_relative_still_anchors_its_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "catalog.paths = ['k.toml']\n")
    written(tmp_path, "", "k.toml")
    monkeypatch.chdir(tmp_path)
    assert loaded(file=Path("musterd.toml")).settings.catalog.paths == (tmp_path / "k.toml",)


def test_a_catalog_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    file = written(tmp_path, "\n[catalog]\npaths = ['k.toml']\n")
    assert refusal(file=file) == [
        f"{file}:3: catalog.paths: {tmp_path}/k.toml cannot be read: No such file or directory"
    ]


def test_settings_built_by_hand_keep_the_same_ranges() -> None:
    workers = loaded().settings.workers
    with pytest.raises(Unfit, match="wanted 1 to 10000"):
        attrs.evolve(workers, max_count=0)


def test_settings_print_no_secret() -> None:
    settings = loaded("store.url=postgresql://u:hidden@h/d", "http.token=hidden").settings
    assert "hidden" not in repr(settings)


def test_a_fault_is_one_line_of_what_where_and_what_to_do() -> None:
    assert (
        str(Fault("f.toml", 3, "a.b", "1", "2", "do 3"))
        == "f.toml:3: a.b: found 1, wanted 2 - do 3"
    )
    assert str(Fault("f.toml", found="cannot be read")) == "f.toml: cannot be read"
    assert str(Fault("--set", key="x", wanted="section.key=value")) == "--set: x: section.key=value"
