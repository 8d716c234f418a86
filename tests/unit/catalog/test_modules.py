"""Kinds of `[catalog] modules`: what is found in the user's modules, and what is said of faults. No
module is imported into this process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from musterd.catalog.kinds import Catalog, Python
from musterd.catalog.load import catalog_of
from musterd.config.faults import ConfigError
from musterd.config.load import load

TASKS = """
from musterd import JobContext, task
from shop.other import elsewhere

print("what a module prints goes nowhere")


@task
def thumbnail(image: int, width: int = 200) -> dict: ...


@task(kind="mail-it", takes_job=True, retryable=True, retry={"max_retries": 2})
async def mail(job: JobContext, to: str) -> None: ...


@task(retry_on=[OSError, ValueError], time_limit_seconds=5, isolation="thread")
def plain(): ...

again = plain
"""
OTHER = "from musterd import task\n\n@task\ndef elsewhere(): ...\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "tasks.py").write_text(TASKS)
    (tmp_path / "shop" / "other.py").write_text(OTHER)
    return tmp_path


def kinds(shop: Path, *modules: str, **sets: str) -> Catalog:
    named = ", ".join(f'"{module}"' for module in modules)
    given = [f"catalog.modules=[{named}]", f'catalog.python_path=["{shop}"]']
    given += ["catalog.shipped=false", *(f"{key.replace('__', '.')}={sets[key]}" for key in sets)]
    return catalog_of(load(None, {}, given).settings, os.environ)


def faults(shop: Path, *modules: str, **sets: str) -> list[str]:
    with pytest.raises(ConfigError) as found:
        kinds(shop, *modules, **sets)
    return [str(fault) for fault in found.value.faults]


def test_the_tasks_of_a_module_are_kinds(shop: Path) -> None:
    before = set(sys.modules)
    found = kinds(shop, "shop.tasks")
    assert sorted(found) == ["mail-it", "plain", "thumbnail"]
    mail, plain, thumbnail = (found[name] for name in sorted(found))
    assert thumbnail.behaviour == Python("shop.tasks", "thumbnail", "process", (shop, shop))
    assert thumbnail.source == f"{shop}/shop/tasks.py:8"
    assert isinstance(mail.behaviour, Python)
    assert (mail.behaviour.function, mail.retryable, mail.retry.max_retries) == ("mail", True, 2)
    assert (plain.retry_on, plain.time_limit_seconds) == (("OSError", "ValueError"), 5)
    assert not {name for name in sys.modules.keys() - before if name.partition(".")[0] == "shop"}


def test_a_package_is_a_module_too_and_several_are_read(shop: Path) -> None:
    (shop / "shop" / "__init__.py").write_text(OTHER.replace("elsewhere", "here"))
    found = kinds(shop, "shop", "shop.other")
    assert sorted(found) == ["elsewhere", "here"]
    assert found["here"].behaviour == Python("shop", "here", "process", (shop, shop))


def test_faults_have_module_and_line(shop: Path) -> None:
    bad = shop / "shop" / "bad.py"
    text = "from musterd import task\n\n@task(retryabel=True)\ndef a(x): ...\n"
    bad.write_text(text + '@task(time_limit_seconds="x")\ndef thumbnail(): ...\n')
    second = f"a second kind of this name - the first is at {bad}:5"
    assert faults(shop, "shop.bad", "shop.tasks") == [
        f"{bad}:3: kinds.a.retryabel: unknown key - did you mean retryable?",
        f'{bad}:5: kinds.thumbnail.time_limit_seconds: found "x", wanted a number',
        f"{shop}/shop/tasks.py:8: kinds.thumbnail: {second}",
    ]


WRONG = [
    ("x = 1 / 0\n", ":1: catalog.modules: cannot import shop.bad: ZeroDivisionError: division by"),
    ("def f(:\n", ":1: catalog.modules: cannot import shop.bad: SyntaxError"),
    ("raise SystemExit(4)\n", ":1: catalog.modules: cannot import shop.bad: SystemExit: 4"),
    ("import os\nos._exit(3)\n", "cannot import shop.bad: the interpreter ended with status 3"),
    (
        "import nothing_like_it\n",
        ":1: catalog.modules: cannot import shop.bad: ModuleNotFoundError",
    ),
    ("x = 1\n", "module shop.bad has no function with @task"),
    (
        "from musterd import task\n@task\ndef f(*all): ...\n",
        ":2: catalog.modules: cannot import shop.bad: TypeError: @task: f takes *all, wanted",
    ),
    (
        "from musterd import task\n@task(takes_job=True)\ndef f(): ...\n",
        "@task: f takes no job, wanted it as first argument",
    ),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_module_that_cannot_be_used_is_a_fault_and_others_are_read(
    shop: Path, text: str, said: str
) -> None:
    (shop / "shop" / "bad.py").write_text(text)
    (fault,) = faults(shop, "shop.bad", "shop.tasks")
    assert said in fault


def test_a_module_that_hangs_is_given_up(shop: Path) -> None:
    (shop / "shop" / "bad.py").write_text("import time\ntime.sleep(600)\n")
    (fault,) = faults(shop, "shop.bad", "shop.tasks", executor__start_timeout_seconds="1")
    assert fault == (
        "shop.bad: catalog.modules: cannot import shop.bad: the interpreter took longer than 1 s"
    )


def test_a_module_that_is_not_there_says_where_was_looked(shop: Path) -> None:
    (fault,) = faults(shop, "shop.nothing")
    assert f"No module named 'shop.nothing' (looked in {shop}, then on" in fault
    (fault,) = faults(shop, "shop.tasks", catalog__python='"/no/python"')
    assert "there is no interpreter /no/python" in fault


def test_a_path_is_no_module(shop: Path) -> None:
    (fault,) = faults(shop, "shop/tasks.py")
    assert 'wanted names of modules, as in import - shop/tasks.py is "shop.tasks"' in fault
