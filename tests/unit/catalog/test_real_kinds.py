"""Kinds of real work as a catalog file gives them."""

import ast
import sys
from pathlib import Path

import attrs
import pytest

import musterd.catalog
from musterd.catalog.kinds import Catalog, Command, HttpCall, KindDefaults, Python, WorkKind
from musterd.catalog.load import catalog_of, load_catalog
from musterd.config.faults import ConfigError
from musterd.config.load import load

SETTINGS = load(None, {}, [], Path("/nonexistent/musterd.toml")).settings
DEFAULTS = KindDefaults(SETTINGS.retry, 7.5, (Path("/lib/a"), Path("/lib/b")))


def kind(folder: Path, keys: str) -> WorkKind:
    file = folder / "kinds.toml"
    file.write_text(f"[kinds.x]\n{keys}\n")
    return load_catalog([file], DEFAULTS)["x"]


def refusal(folder: Path, keys: str) -> str:
    with pytest.raises(ConfigError) as refused:
        kind(folder, keys)
    (fault,) = refused.value.faults
    return str(fault)


def test_a_python_kind_looks_beside_its_file_first(tmp_path: Path) -> None:
    found = kind(tmp_path, 'python = "shop.images:thumbnail"')
    search_path = (tmp_path, Path("/lib/a"), Path("/lib/b"))
    assert found.behaviour == Python("shop.images", "thumbnail", "process", search_path)
    assert (found.retryable, found.retry_on, found.budgets) == (False, (), {})
    assert (found.grace_seconds, found.max_running, found.broken) == (7.5, None, None)


def test_every_key_of_a_python_kind_is_read(tmp_path: Path) -> None:
    found = kind(
        tmp_path,
        'python = "jobs:run"\nisolation = "task"\ngrace_seconds = 0\nmax_running = 3\n'
        'retry_on = ["TimeoutError", "shop.errors.Declined"]\nretryable = true\n'
        "budgets = { tokens = 10000, calls = 1 }\ntime_limit_seconds = 5\n"
        "retry = { max_retries = 1 }\npriority = 4\non_lease_lost = 'fail'",
    )
    assert found.behaviour == Python("jobs", "run", "task", (tmp_path, *DEFAULTS.python_path))
    assert found.retry_on == ("TimeoutError", "shop.errors.Declined")
    assert found.budgets == {"tokens": 10000, "calls": 1}
    assert (found.grace_seconds, found.max_running, found.retryable) == (0.0, 3, True)
    assert found.retry == attrs.evolve(SETTINGS.retry, max_retries=1)
    assert (found.time_limit_seconds, found.priority, found.on_lease_lost) == (5.0, 4, "fail")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "duration_ms = 1\nbudgets = { tokens = 1 }",
            (
                "budgets: does not go with a deterministic kind - "
                "it is a key of python, command, http or phases kinds"
            ),
        ),
        (
            'command = ["backup"]\nisolation = "task"',
            "isolation: does not go with command - it is a key of python kinds",
        ),
    ],
)
def test_a_key_of_other_kinds_is_refused_with_their_names(
    tmp_path: Path, keys: str, said: str
) -> None:
    assert refusal(tmp_path, keys).endswith(f"kinds.x.{said}")


def test_the_catalog_knows_which_kinds_have_a_limit(tmp_path: Path) -> None:
    limited = attrs.evolve(kind(tmp_path, 'command = ["backup"]\nmax_running = 3'), name="a")
    free = kind(tmp_path, 'command = ["backup"]')
    assert Catalog([limited, free]).caps == (("a", 3),)
    assert Catalog([free]).caps == ()


def test_a_command_kind_runs_privately_unless_told_otherwise(tmp_path: Path) -> None:
    assert kind(tmp_path, 'command = ["backup", "", "ä"]').behaviour == Command(
        argv=("backup", "", "ä"),
        cwd=None,
        umask=0o077,
        environment=(),
        rlimits={},
        retry_on_exit=(),
    )


def test_every_key_of_a_command_kind_is_read(tmp_path: Path) -> None:
    found = kind(
        tmp_path,
        'command = ["/bin/backup", "--full"]\ncwd = "../data"\numask = "027"\n'
        'environment = ["PATH", "AWS_PROFILE"]\nretry_on_exit = [1, 255]\n'
        "rlimits = { nofile = 64, as_mb = 512, cpu_seconds = 60, core_mb = 0 }",
    )
    assert found.behaviour == Command(
        argv=("/bin/backup", "--full"),
        cwd=tmp_path.parent / "data",
        umask=0o027,
        environment=("PATH", "AWS_PROFILE"),
        rlimits={"nofile": 64, "as_mb": 512, "cpu_seconds": 60, "core_mb": 0},
        retry_on_exit=(1, 255),
    )


def test_an_http_kind_posts_unless_told_otherwise(tmp_path: Path) -> None:
    found = kind(tmp_path, 'http = { url = "http://127.0.0.1:8000/notify?to=all" }')
    assert found.behaviour == HttpCall("POST", "http://127.0.0.1:8000/notify?to=all", {}, {})


def test_every_key_of_an_http_kind_is_read(tmp_path: Path) -> None:
    found = kind(
        tmp_path,
        '[kinds.x.http]\nmethod = "PUT"\nurl = "https://[::1]:8443/@x"\n'
        'headers = { Accept = "text/plain", X-Empty = "" }\n'
        'header_files = { Authorization = "secrets/token", X-Key = "/run/key" }',
    )
    assert found.behaviour == HttpCall(
        method="PUT",
        url="https://[::1]:8443/@x",
        headers={"Accept": "text/plain", "X-Empty": ""},
        header_files={"Authorization": tmp_path / "secrets/token", "X-Key": Path("/run/key")},
    )


def test_a_kind_prints_no_header_that_may_be_a_secret(tmp_path: Path) -> None:
    found = kind(tmp_path, 'http = { url = "http://h/", headers = { X-Token = "hidden" } }')
    assert "hidden" not in repr(found)


def test_no_behaviour_can_be_changed(tmp_path: Path) -> None:
    command = kind(tmp_path, 'command = ["x"]\nrlimits = { nofile = 9 }').behaviour
    assert isinstance(command, Command)
    assert not hasattr(command.rlimits, "__setitem__")


@pytest.mark.parametrize(
    "name", ["jobs:run", "a.b.c:d", "_x:_y", "größe:fläche", "config:catalog", "m:C1"]
)
def test_a_function_may_have_any_name_of_python(tmp_path: Path, name: str) -> None:
    behaviour = kind(tmp_path, f'python = "{name}"').behaviour
    assert isinstance(behaviour, Python)
    assert f"{behaviour.module}:{behaviour.function}" == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ":", "jobs", "jobs:", ":run", "jobs:run:x", "jobs:a.b", ".jobs:run", "a..b:c"),
        *("jobs.:x", "jobs:run()", "jobs: run", "class:x", "x:def", "1:x", "a-b:c", "jobs:run\\n"),
    ],
)
def test_what_is_no_name_of_a_function_is_refused(tmp_path: Path, name: str) -> None:
    assert 'wanted "module:function"' in refusal(tmp_path, f'python = "{name}"')


@pytest.mark.parametrize("umask", ["000", "077", "777", "0077", "22", "7"])
def test_a_umask_is_octal(tmp_path: Path, umask: str) -> None:
    command = kind(tmp_path, f'command = ["x"]\numask = "{umask}"').behaviour
    assert isinstance(command, Command)
    assert command.umask == int(umask, 8)


@pytest.mark.parametrize("umask", ["", "8", "1777", "0o77", "-1", "u=rwx", "00000"])
def test_what_is_no_umask_is_refused(tmp_path: Path, umask: str) -> None:
    assert "wanted octal digits in quotes" in refusal(
        tmp_path, f'command = ["x"]\numask = "{umask}"'
    )


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "x",
            "/x",
            "//h/x",
            "http:",
            "http:/h",
            "http://",
            "HTTP:h",
            "ftp://h/",
            "http://:80/",
        ),
        *("http://h:0/", "http://h:65536/", "http://h:x/", "http://[::1/", "http://u@h/"),
        *("http://u:p@h/", "http://h/a b", "http://h/\\n", "http://h/#", "http://ö.example/"),
    ],
)
def test_what_cannot_be_called_is_refused(tmp_path: Path, url: str) -> None:
    said = refusal(tmp_path, f'http = {{ url = "{url}" }}')
    assert ":2: kinds.x.http.url: found " in said


@pytest.mark.parametrize("name", ["Musterd-Job-Id", "Content-Length", "transfer-encoding", "a:b"])
@pytest.mark.parametrize("table", ["headers", "header_files"])
def test_a_header_that_is_not_the_kinds_to_set_is_refused(
    tmp_path: Path, table: str, name: str
) -> None:
    keys = f'http = {{ url = "http://h/", {table} = {{ "{name}" = "x" }} }}'
    assert f"kinds.x.http.{table}." in refusal(tmp_path, keys)


@pytest.mark.parametrize("value", ["a\\nb", "a\\r", " a", "a ", "ä", "\\u0000"])
def test_a_header_stays_on_its_line(tmp_path: Path, value: str) -> None:
    keys = f'http = {{ url = "http://h/", headers = {{ X-A = "{value}" }} }}'
    assert "found a string, wanted one line of printable ASCII" in refusal(tmp_path, keys)


def test_a_value_beside_a_variables_name_is_not_shown(tmp_path: Path) -> None:
    said = refusal(tmp_path, 'command = ["x"]\nenvironment = ["KEY=hidden"]')
    assert "hidden" not in said
    assert "KEY comes from the daemon's own" in said


@pytest.mark.parametrize(
    "keys",
    [
        'python = "m:f"\nretry_on = ["E", "E"]',
        'command = ["x"]\nenvironment = ["A", "A"]',
        'command = ["x"]\nretry_on_exit = [1, 1]',
    ],
)
def test_nothing_is_listed_twice(tmp_path: Path, keys: str) -> None:
    assert refusal(tmp_path, keys).endswith("wanted each only once")


def test_the_settings_give_what_a_kind_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "kinds.toml"
    file.write_text('[kinds.x]\npython = "m:f"\n[kinds.y]\npython = "m:f"\ngrace_seconds = 1\n')
    sets = [f"catalog.paths=['{file}']", f"catalog.python_path=['{tmp_path.parent}']"]
    settings = load(None, {}, [*sets, "executor.grace_seconds=9"], Path("/nonexistent")).settings
    catalog = catalog_of(settings, {})
    assert (catalog["x"].grace_seconds, catalog["y"].grace_seconds) == (9.0, 1.0)
    assert catalog["x"].behaviour == Python("m", "f", "process", (tmp_path, tmp_path.parent))


def test_the_probe_imports_nothing_but_the_standard_library() -> None:
    """It is run by the user's interpreter, which may know nothing of musterd's needs."""
    (folder,) = musterd.catalog.__path__
    tree = ast.parse((Path(folder) / "probe.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    names = {alias.name.partition(".")[0] for node in imports for alias in node.names}
    assert names <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_a_kind_without_a_rule_for_lost_leases_has_that_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "kinds.toml"
    file.write_text(
        "[kinds.own]\nduration_ms = 0\non_lease_lost = 'requeue'\n[kinds.open]\nduration_ms = 0\n"
    )
    sets = [f'catalog.paths=["{file}"]', "leases.on_lease_lost=pause"]
    catalog = catalog_of(load(None, {}, sets, Path("/nonexistent/musterd.toml")).settings, {})
    assert (catalog["own"].on_lease_lost, catalog["open"].on_lease_lost) == ("requeue", "pause")
