"""Which kinds there are: the shipped ones, the user's, and what a file may not say."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from musterd.catalog.kinds import Catalog, Deterministic, Python, UnknownKind, WorkKind, plan
from musterd.catalog.load import SHIPPED_FILE, catalog_of, load_catalog
from musterd.config.faults import ConfigError
from musterd.config.load import load
from musterd.config.settings import Retry, Settings

RETRY = load(None, {}, [], Path("/nonexistent/musterd.toml")).settings.retry

BEHAVIOURS = ("python", "command", "http", "phases")


def written(folder: Path, text: str, name: str = "kinds.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def refusal(*paths: Path) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_catalog(paths, RETRY)
    return [str(fault) for fault in refused.value.faults]


def kind(folder: Path, keys: str) -> WorkKind:
    return load_catalog([written(folder, f"[kinds.x]\n{keys}\n")], RETRY)["x"]


def does(kind: WorkKind) -> Deterministic:
    assert isinstance(kind.behaviour, Deterministic)
    return kind.behaviour


def test_the_shipped_kinds_show_each_behaviour() -> None:
    shipped = load_catalog([], RETRY)
    assert set(shipped) >= {"noop", "report", "sleep", "slow", "flaky", "broken", "stubborn"}
    parts = [part for each in shipped.values() for part in each.parts]
    assert {does(part).outcome for part in parts} == {"success", "fail", "cancel"}
    assert {each.on_lease_lost for each in shipped.values()} == {"requeue", "fail", "pause"}
    assert plan(shipped["noop"], {}, 1).duration_seconds == 0
    assert plan(shipped["report"], {}, 1).duration_seconds == 0.2
    assert does(shipped["sleep"]).duration_ms_min < does(shipped["sleep"]).duration_ms_max
    assert (shipped["flaky"].retryable, does(shipped["flaky"]).fail_first) == (True, 2)
    assert (shipped["broken"].retryable, does(shipped["broken"]).outcome) == (False, "fail")
    assert (shipped["stubborn"].retryable, does(shipped["stubborn"]).outcome) == (True, "fail")
    assert does(shipped["declined"]).outcome == "cancel"


def test_the_overdue_kind_outlasts_its_limit() -> None:
    overdue = load_catalog([], RETRY)["overdue"]
    assert overdue.time_limit_seconds is not None
    assert does(overdue).duration_ms_min > overdue.time_limit_seconds * 1000


def test_each_shipped_kind_stands_where_it_says() -> None:
    lines = SHIPPED_FILE.read_text().splitlines()
    for name, each in load_catalog([], RETRY).items():
        file, _, line = each.source.rpartition(":")
        assert file == str(SHIPPED_FILE)
        assert lines[int(line) - 1].startswith(f"[kinds.{name}]")
        assert "#" in lines[int(line) - 1]


def test_what_is_left_out_is_what_the_shipped_file_says(tmp_path: Path) -> None:
    assert kind(tmp_path, "duration_ms = 200") == WorkKind(
        name="x",
        behaviour=Deterministic(200, 200, "success", 0),
        retryable=False,
        retry=RETRY,
        time_limit_seconds=None,
        priority=0,
        on_lease_lost="requeue",
        source=f"{tmp_path}/kinds.toml:1",
    )
    assert kind(tmp_path, "outcome = 'fail'").behaviour == Deterministic(0, 0, "fail", 0)


def test_every_key_is_read(tmp_path: Path) -> None:
    full = kind(
        tmp_path,
        "duration_ms = [100, 400]\noutcome = 'cancel'\nretryable = true\nfail_first = 2\n"
        "time_limit_seconds = 5\npriority = -7\non_lease_lost = 'pause'\n"
        "retry = { max_retries = 9, backoff = 'linear' }",
    )
    assert full.behaviour == Deterministic(100, 400, "cancel", 2)
    assert (full.retryable, full.time_limit_seconds, full.priority) == (True, 5.0, -7)
    assert full.on_lease_lost == "pause"
    assert full.retry == attrs.evolve(RETRY, max_retries=9, backoff="linear")


def test_a_kind_overrides_single_keys_of_the_settings_retry(tmp_path: Path) -> None:
    file = written(tmp_path, "[kinds.x]\nduration_ms = 1\nretry = { max_retries = 9 }\n")
    default = Retry(1, "fixed", base_seconds=7, factor=1, max_seconds=8, jitter="none")
    assert load_catalog([file], default)["x"].retry == attrs.evolve(default, max_retries=9)
    assert load_catalog([file], default)["report"].retry == default


def test_an_override_must_fit_the_keys_it_leaves(tmp_path: Path) -> None:
    file = written(tmp_path, "[kinds.x]\nduration_ms = 1\nretry.max_seconds = 0.5\n")
    assert refusal(file) == [
        (
            f"{file}:3: kinds.x.retry.max_seconds: found 0.5,"
            " wanted base_seconds <= max_seconds (here 1 and 0.5)"
        )
    ]


def test_a_users_kind_replaces_the_shipped_one(tmp_path: Path) -> None:
    file = written(tmp_path, "[kinds.report]\nduration_ms = 9\n")
    catalog = load_catalog([file], RETRY)
    assert catalog["report"].source == f"{file}:1"
    assert len(catalog) == len(load_catalog([], RETRY))


def test_a_kind_given_twice_by_the_user_is_a_fault(tmp_path: Path) -> None:
    first = written(tmp_path, "\n[kinds.report]\nduration_ms = 9\n", "a.toml")
    second = written(tmp_path, "[kinds.report]\nduration_ms = 'x'\n", "b.toml")
    assert refusal(first, second) == [
        f"{second}:1: kinds.report: a second kind of this name - the first is at {first}:2",
        (
            f'{second}:2: kinds.report.duration_ms: found "x",'
            " wanted whole milliseconds, or a range [least, most]"
        ),
    ]


def test_a_folder_gives_its_toml_files_in_order(tmp_path: Path) -> None:
    written(tmp_path, "[kinds.b]\nduration_ms = 1\n", "b.toml")
    written(tmp_path, "[kinds.a]\nduration_ms = 1\n", "a.toml")
    written(tmp_path, "not toml", "notes.txt")
    written(tmp_path, "not toml", ".#b.toml")
    added = [name for name in load_catalog([tmp_path], RETRY) if name in "ab"]
    assert added == ["a", "b"]


def test_an_empty_file_and_an_empty_folder_add_nothing(tmp_path: Path) -> None:
    assert list(load_catalog([tmp_path, written(tmp_path, "")], RETRY)) == list(
        load_catalog([], RETRY)
    )


def test_faults_of_all_files_are_told_in_one_run(tmp_path: Path) -> None:
    broken = written(tmp_path, "[kinds.x\n", "a.toml")
    strange = written(tmp_path, "[kinds.x]\nduration = 1\n", "b.toml")
    assert refusal(tmp_path, tmp_path / "gone.toml") == [
        f"{broken}:1: not TOML: Expected ']' at the end of a table declaration (column 9)",
        f"{tmp_path}/gone.toml: cannot be read: No such file or directory",
        f"{strange}:1: kinds.x: found no behaviour, wanted {', '.join(BEHAVIOURS)} or duration_ms",
        f"{strange}:2: kinds.x.duration: unknown key - did you mean duration_ms?",
    ]


@pytest.mark.parametrize("name", ["a", "Z9", "shop.mail", "a-b_c.D", "a" * 100])
def test_a_good_name_is_taken(tmp_path: Path, name: str) -> None:
    assert name in load_catalog([written(tmp_path, f'[kinds."{name}"]\nduration_ms=1')], RETRY)


@pytest.mark.parametrize("name", ["", "9a", "_a", "a b", "a/b", "é", "a" * 101, "a\\n"])
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    (said,) = refusal(written(tmp_path, f'[kinds."{name}"]\nduration_ms=1'))
    assert said.endswith("wanted a letter, then up to 99 letters, digits, _, . or -")


@pytest.mark.parametrize(
    "duration", ["true", "1.5", "'1'", "[]", "[1]", "[1, true]", "-1", "86400001", "[2, 1]", "{}"]
)
def test_a_bad_duration_is_refused(tmp_path: Path, duration: str) -> None:
    (said,) = refusal(written(tmp_path, f"[kinds.x]\nduration_ms = {duration}\n"))
    assert ":2: kinds.x.duration_ms: found " in said


def test_the_edges_of_the_ranges_are_inside(tmp_path: Path) -> None:
    assert does(kind(tmp_path, "duration_ms = [0, 86400000]")).duration_ms_max == 86_400_000
    assert kind(tmp_path, "duration_ms = 0\npriority = -32768").priority == -32_768
    assert kind(tmp_path, "duration_ms = 0\npriority = 32767").priority == 32_767


def test_a_catalog_suggests_the_nearest_kind() -> None:
    catalog = load_catalog([], RETRY)
    for name, guess in (("reprot", "report"), ("Report", "report"), ("xyzzy", None)):
        with pytest.raises(UnknownKind) as caught:
            catalog.known(name)
        assert caught.value.guess == guess


def test_a_catalog_never_changes() -> None:
    catalog = load_catalog([], RETRY)
    assert isinstance(catalog, Mapping)
    assert not hasattr(catalog, "__setitem__")
    assert catalog == Catalog(catalog.values())
    assert catalog != Catalog([])


def test_a_catalog_takes_any_iterable() -> None:
    def kinds() -> Iterator[WorkKind]:
        yield from load_catalog([], RETRY).values()

    assert len(Catalog(kinds())) == len(load_catalog([], RETRY))


def settings_of(tmp_path: Path, *sets: str) -> Settings:
    return load(None, {}, sets, tmp_path / "none.toml").settings


def test_the_shipped_kinds_can_be_left_out(tmp_path: Path) -> None:
    file = written(tmp_path, "[kinds.mine]\nduration_ms = 1\n")
    sets = (f"catalog.paths=['{file}']", "catalog.shipped=false")
    assert list(catalog_of(settings_of(tmp_path, *sets), {})) == ["mine"]
    assert "report" in catalog_of(settings_of(tmp_path, sets[0]), {})


def test_modules_are_looked_up_on_pythonpath_too_unless_another_interpreter_runs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the environment which is given, not of this process."""
    monkeypatch.setenv("PYTHONPATH", "/of/this/process")
    environ = {"PYTHONPATH": f"{tmp_path}/lib::relative"}
    file = written(tmp_path, '[kinds.mine]\npython = "shop:run"\n')
    sets = (f"catalog.paths=['{file}']", f"catalog.python_path=['{tmp_path}']")
    does = catalog_of(settings_of(tmp_path, *sets), environ)["mine"].behaviour
    assert isinstance(does, Python)
    own = (tmp_path / "lib", Path.cwd() / "relative")
    assert does.search_path == (tmp_path, tmp_path, *own)
    other = settings_of(tmp_path, *sets, f"catalog.python='{sys.executable}'")
    does = catalog_of(other, environ)["mine"].behaviour
    assert isinstance(does, Python)
    assert does.search_path == (tmp_path, tmp_path)
