"""`musterd kinds --check`: real modules, interpreters and programs, and what is wrong with them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Done, Home, eventually

ONE_LINE = "one line of printable ASCII, no space at either end"
MODULES = {
    "good": """
        import functools
        from musterd import JobContext, Retry
        def plain(job: JobContext): raise Retry()
        async def coroutine(job): ...
        def wrapped(job, more): ...
        def none(): ...
        def generator(job): yield
        partly = functools.partial(wrapped, more=1)
        class Callable:
            async def __call__(self, job): ...
        instance = Callable()
        number = 5
    """,
    "config": "def mine(job): ...",
    "raises": "x = 1\nraise ValueError('no licence')",
    "needs": "import no_such_thing",
    "unfinished": "def f(:",
    "leaves": "import sys; sys.exit(3)",
    "dies": "import os; os._exit(0)",
    "crashes": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "hangs": "import time; time.sleep(600)",
    "prints": "import os; print('[1]'); os.write(2, b'x' * 999999)\ndef f(job): ...",
    "looks": """
        import os
        seen = [x for x in os.environ if x.startswith(("MUSTERD_", "PG", "NOTIFY_"))]
        assert not seen, seen
        assert os.environ["OF_MINE"] == "1"
        def f(job): ...
    """,
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder of modules, to which a test adds its catalog."""
    for name, text in MODULES.items():
        lines = text.splitlines()
        indent = 8 if not lines[0] else 0
        (tmp_path / f"{name}.py").write_text("\n".join(line[indent:] for line in lines))
    return tmp_path


def check(home: Home, folder: Path, kinds: str, *options: str, **environ: str) -> Done:
    (folder / "kinds.toml").write_text(kinds)
    paths = f'catalog.paths=["{folder}/kinds.toml"]'
    return home.call("kinds", "--check", "--json", "--set", paths, *options, **environ)


def reasons(done: Done) -> Mapping[str, Any]:
    """Gives why each kind of the test's own is broken, None for those that are not."""
    found = {kind["name"]: kind["broken"] for kind in done.lines}
    shipped = {kind["name"] for kind in done.lines if "/default.toml:" in kind["source"]}
    assert all(found[name] is None for name in shipped)
    return {name: why for name, why in found.items() if name not in shipped}


def reason(home: Home, folder: Path, keys: str, *options: str) -> Any:
    done = check(home, folder, f"\n[kinds.x]\n{keys}\n", *options)
    (why,) = reasons(done).values()
    assert done.code == (78 if why else 0), done
    return why and why.removeprefix(f"{folder}/kinds.toml:2: kinds.x.")


def test_what_can_run_is_said_to(home: Home, shop: Path) -> None:
    kinds = """
        [kinds]
        a = { python = "good:plain" }
        b = { python = "good:coroutine" }
        c = { python = "good:coroutine", isolation = "task" }
        d = { python = "good:plain", isolation = "thread" }
        e = { python = "good:partly" }
        f = { python = "good:instance", isolation = "task" }
        g = { python = "config:mine" }
        h = { python = "prints:f" }
        i = { command = ["cat"], cwd = "." }
        j = { http = { url = "http://127.0.0.1:1/", header_files = { X-Key = "key" } } }
    """
    (shop / "key").write_text("s3cret\n")
    done = check(home, shop, kinds)
    assert reasons(done) == dict.fromkeys("abcdefghij")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("function", "isolation", "said"),
    [
        ("gone:f", "process", "cannot import gone: ModuleNotFoundError: No module named 'gone' (l"),
        ("good:plian", "process", "has no plian - did you mean good:plain?"),
        ("good:number", "process", "good:number is no function but of type int"),
        ("good:none", "process", "good:none does not take one argument, the job"),
        ("good:wrapped", "process", "good:wrapped does not take one argument, the job"),
        ("good:generator", "process", "good:generator is a generator"),
        ("good:plain", "task", 'good:plain is a plain def, isolation "task" needs an async def'),
        ("good:coroutine", "thread", 'is an async def, isolation "thread" needs a def'),
        ("raises:f", "process", "ValueError: no licence (FOLDER/raises.py:2)"),
        ("raises:f", "task", "ValueError: no licence (FOLDER/raises.py:2)"),
        ("needs:f", "process", "No module named 'no_such_thing' (FOLDER/needs.py:1)"),
        ("unfinished:f", "process", "SyntaxError: invalid syntax (FOLDER/unfinished.py:1)"),
        ("leaves:f", "process", "cannot import leaves: SystemExit: 3"),
        ("dies:f", "process", "cannot import dies: the interpreter ended with status 0"),
        ("crashes:f", "thread", "cannot import crashes: the interpreter was ended by SIGSEGV"),
    ],
)
def test_a_function_that_cannot_run_is_named_with_the_reason(
    home: Home, shop: Path, function: str, isolation: str, said: str
) -> None:
    why = reason(home, shop, f'python = "{function}"\nisolation = "{isolation}"')
    assert why.startswith("python: ")
    assert said.replace("FOLDER", str(shop)) in why


def test_a_module_that_ends_its_interpreter_takes_no_other_kind_with_it(
    home: Home, shop: Path
) -> None:
    functions = ("dies:f", "good:plain", "crashes:f", "hangs:f", "dies:g", "good:none", "config:f")
    kinds = "".join(f'[kinds.k{n}]\npython = "{f}"\n' for n, f in enumerate(functions))
    why = reasons(check(home, shop, kinds, "--set", "executor.start_timeout_seconds=1"))
    assert why["k1"] is None
    assert "dies: the interpreter ended with status 0" in why["k0"]
    assert why["k0"].partition("import")[2] == why["k4"].partition("import")[2]
    assert "crashes: the interpreter was ended by SIGSEGV" in why["k2"]
    assert "hangs: the interpreter took longer than 1 s" in why["k3"]
    assert "does not take one argument" in why["k5"]
    assert "has no f" in why["k6"]


def test_modules_of_one_name_in_two_folders_are_two(home: Home, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jobs.py").write_text(f"def {name}(job): ...\n")
        (tmp_path / name / "k.toml").write_text(f'[kinds.{name}]\npython = "jobs:{name}"\n')
    paths = f'catalog.paths=["{tmp_path}/a", "{tmp_path}/b"]'
    assert home.call("kinds", "--check", "--set", paths).code == 0


def test_modules_are_looked_for_in_the_python_path_too(home: Home, shop: Path) -> None:
    (shop / "lib").mkdir()
    (shop / "lib" / "good.py").write_text("def of_lib(job): ...\n")
    (shop / "lib" / "more.py").write_text("def f(job): ...\n")
    path = ("--set", f'catalog.python_path=["{shop}/lib"]')
    assert reason(home, shop, 'python = "more:f"', *path) is None
    assert "has no of_lib" in reason(home, shop, 'python = "good:of_lib"', *path)


def test_a_virtual_environment_of_the_users_own_is_asked(home: Home, shop: Path) -> None:
    """It has a module of its own and nothing that musterd needs, and `import musterd` works."""
    make = [sys.executable, "-m", "venv", "--without-pip", str(shop / "venv")]
    subprocess.run(make, check=True)
    (packages,) = (shop / "venv/lib").glob("python3*/site-packages")
    (packages / "only_here.py").write_text("def f(job): ...\n")
    python = ("--set", f"catalog.python={shop}/venv/bin/python")
    assert reason(home, shop, 'python = "only_here:f"', *python) is None
    assert reason(home, shop, 'python = "good:plain"', *python) is None
    assert "No module named 'attrs'" in reason(home, shop, 'python = "attrs:field"', *python)
    assert "No module named 'only_here'" in reason(home, shop, 'python = "only_here:f"')
    task = 'python = "only_here:f"\nisolation = "thread"'
    assert "No module named 'only_here'" in reason(home, shop, task, *python)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no interpreter FOLDER/python ([catalog] python)"),
        ("#!/bin/sh\nexit 3\n", "FOLDER/python does not work: it ended with status 3"),
        ("#!/bin/sh\necho hello\n", "FOLDER/python does not work: it does not answer as a Python"),
        ("#!/bin/sh\nwhile :; do echo x; done\n", "it does not answer as a Python does"),
        ("#!/bin/sh\necho no libpython >&2; exit 1\n", "it ended with status 1: no libpython"),
        ("#!/bin/sh\necho [3, 4]\n", "FOLDER/python is Python 3.4, wanted 3.9 or newer"),
        ("#!/no/such/sh\n", "does not work: it cannot be started: No such file or directory"),
    ],
)
def test_an_interpreter_that_is_none_breaks_the_kinds_that_need_it(
    home: Home, shop: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (shop / "python").write_text(text)
        (shop / "python").chmod(0o755)
    python = ("--set", f"catalog.python={shop}/python")
    assert said.replace("FOLDER", str(shop)) in reason(home, shop, 'python = "good:plain"', *python)
    task = 'python = "good:coroutine"\nisolation = "task"'
    assert reason(home, shop, task, *python) is None


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('command = ["no-such-program"]', "command: there is no program no-such-program on PATH"),
        ('command = ["/no/such"]', "command: there is no program /no/such"),
        ('command = ["FOLDER"]', "command: FOLDER is a folder"),
        ('command = ["FOLDER/good.py"]', "command: FOLDER/good.py is not executable"),
        ('command = ["cat"]\ncwd = "gone"', "cwd: FOLDER/gone does not exist"),
        ('command = ["cat"]\ncwd = "good.py"', "cwd: FOLDER/good.py is no folder"),
        (
            'http = { url = "http://h/", header_files = { X-Key = "gone" } }',
            "http.header_files.X-Key: FOLDER/gone: cannot be read: No such file or directory",
        ),
        (
            'http = { url = "http://h/", header_files = { X-Key = "lines" } }',
            "http.header_files.X-Key: FOLDER/lines: more than one line",
        ),
        (
            'http = { url = "http://h/", header_files = { X-Key = "umlaut" } }',
            f"http.header_files.X-Key: FOLDER/umlaut does not hold {ONE_LINE}",
        ),
    ],
)
def test_what_a_command_or_a_call_lacks_is_named(
    home: Home, shop: Path, keys: str, said: str
) -> None:
    (shop / "lines").write_text("hidden\nhidden\n")
    (shop / "umlaut").write_text("hiddenä\n")
    place = str(shop)
    assert reason(home, shop, keys.replace("FOLDER", place)) == said.replace("FOLDER", place)


def test_a_module_sees_no_secret_of_the_daemon(home: Home, shop: Path) -> None:
    secrets = {"MUSTERD_HTTP__TOKEN": "x", "PGPASSWORD": "x", "NOTIFY_SOCKET": "/x"}
    done = check(home, shop, '[kinds.x]\npython = "looks:f"\n', OF_MINE="1", **secrets)
    assert reasons(done) == {"x": None}


def test_nothing_that_a_module_starts_is_left_behind(home: Home, shop: Path) -> None:
    (shop / "starts.py").write_text(
        "import pathlib, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path(__file__).with_name('pid').write_text(str(child.pid))\n"
        "def f(job): ...\n"
    )
    assert reason(home, shop, 'python = "starts:f"') is None
    pid = int((shop / "pid").read_text())
    eventually(lambda: not is_alive(pid))
    assert not (shop / "__pycache__").exists()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_table_is_for_people_and_the_list_asks_nobody(home: Home, shop: Path) -> None:
    (shop / "kinds.toml").write_text(
        '[kinds.ok]\npython = "good:plain"\n[kinds.bad]\npython = "dies:f"\n'
        '[kinds.call]\nhttp = { url = "http://h/", headers = { X-Token = "hidden" } }\n'
    )
    paths = ("--set", f'catalog.paths=["{shop}/kinds.toml"]')
    done = home.call("kinds", "--check", *paths)
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.out.splitlines()}
    assert lines["ok"] == ["ok", "python good:plain (process)"]
    assert lines["bad"][0] == "broken"
    assert lines["bad"][1].startswith(f"{shop}/kinds.toml:3: kinds.bad.python: cannot import dies")
    assert (done.code, done.err.splitlines()[0]) == (78, "musterd: can't run here: bad")
    listed = home.call("kinds", *paths)
    assert (listed.code, listed.err) == (0, "")
    assert "http POST http://h/" in listed.out
    objects = home.call("kinds", "--json", *paths)
    assert objects.code == 0
    assert "hidden" not in objects.out + listed.out
    assert not [kind for kind in objects.lines if "broken" in kind]


def test_a_folder_that_may_not_be_entered_is_named(home: Home, shop: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may enter any folder")
    (shop / "locked").mkdir(mode=0)
    why = reason(home, shop, 'command = ["cat"]\ncwd = "locked"')
    assert why == f"cwd: {shop}/locked may not be entered"
