"""The rules of the house: who may import whom, how large a thing may grow, where time comes from.

Every failure names file and line. To depart from a rule, name the place in one of the lists
below, with the reason.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
import tomli

ROOT = Path(__file__).resolve().parent.parent

# Who may import whom. "" is the package itself: its public names, and `python -m musterd`.
MAY_IMPORT = {
    "config": {"config"},
    "catalog": {"catalog", "config"},
    "store": {"store", "config"},
    "workers": {"workers", "store", "catalog", "config"},
    "manager": {"manager", "workers", "store", "catalog", "config"},
    "web": {"web", "manager", "workers", "store", "catalog", "config"},
    "console": {"console", "web", "manager", "workers", "store", "catalog", "config"},
    "musterd": {
        *("testing", "contrib", "tasks"),  # what users import beside the package itself
        *("console", "web", "manager", "workers", "store", "catalog", "config"),
    },
}
FOLDERS = [folder for folder in MAY_IMPORT if folder != "musterd"]

LINES_MAX = {"module": 500, "function": 50}
ARGUMENTS_MAX = 6
SQL_WIDTH_MAX = 132
NESTING_MAX = 3

# Who may look at the wall clock or roll the rng themselves: (path, call, why).
OWN_CLOCK_OR_DICE = (
    ("console/command.py", "datetime.now", "a verb is the door: `--at 03:12` is the next 03:12"),
    (
        "console/verbs/events.py",
        "datetime.now",
        "a verb is the door: `--since 10m` is from now on back",
    ),
    ("console/verbs/jobs.py", "datetime.now", "a verb is the door: it tells a person how long ago"),
    ("console/verbs/webhooks.py", "datetime.now", "as in jobs.py"),
    ("console/wiring.py", "time.time", "wires the daemon: stamps the settings it has loaded"),
)

CLOCK_OR_DICE = re.compile(r"time\.time(_ns)?|(datetime\.)?(datetime|date)\.(now|utcnow|today)")
GLOBAL_DICE = re.compile(r"random\.[a-z]\w*")

# Written so that this file does not match itself.
UNWANTED = {
    "a registry's host": re.compile(r"(pypi|npmj[s]|debian|pythonhoste[d])\.(org|com)\b"),
    "a machine's path": re.compile(r"(?<![\w.$}])/(work|root|home|Users|opt/pypi)/\w"),
}
TEXT_SUFFIXES = {
    *{"", ".cfg", ".conf", ".css", ".html", ".js", ".json", ".md", ".py", ".service", ".sh"},
    *{".sql", ".toml", ".txt", ".yaml", ".yml"},
}
NOT_OURS = {"__pycache__", "build", "dist"}

COMPOUND = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith),
    *(ast.Try, ast.TryStar, ast.Match),
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def files_below(folder: Path) -> Iterator[Path]:
    """The project's own files, links left out: what they point at is found at its own place."""
    for path in sorted(folder.iterdir()):
        hidden = path.name.startswith(".") and path.name != ".ci"
        if path.is_symlink() or hidden or path.name in NOT_OURS:
            continue
        if path.is_dir():
            yield from files_below(path)
        elif path.suffix in TEXT_SUFFIXES:
            yield path


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


FILES = list(files_below(ROOT))
MODULES = [path for path in FILES if path.suffix == ".py"]
SHIPPED = [path for path in MODULES if path.relative_to(ROOT).parts[0] in MAY_IMPORT]
SQL = [path for path in FILES if path.suffix == ".sql"]
PACKAGES = sorted({ROOT / folder for folder in MAY_IMPORT} | {path.parent for path in SHIPPED})

each_file = pytest.mark.parametrize("path", FILES, ids=name_of)
each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)
each_shipped_module = pytest.mark.parametrize("path", SHIPPED, ids=name_of)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_link_leads_to_its_folder(folder: str) -> None:
    link = ROOT / "musterd" / folder
    assert link.is_symlink(), f"musterd/{folder}: no link; ln -s ../{folder} musterd/{folder}"
    assert str(link.readlink()) == f"../{folder}"
    assert link.resolve() == ROOT / folder


def test_pyright_is_told_of_each_link() -> None:
    settings = tomli.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]
    links = {f"musterd/{folder}" for folder in FOLDERS}
    assert set(settings["include"]) == {"musterd", "deploy", "tests", *links}


@pytest.mark.parametrize("folder", PACKAGES, ids=name_of)
def test_a_folder_says_what_it_owns(folder: Path) -> None:
    door = folder / "__init__.py"
    assert door.is_file(), f"{name_of(folder)}: no __init__.py whose docstring says what it owns"
    assert ast.get_docstring(tree_of(door)), f"{name_of(door)}:1: no docstring"


@each_shipped_module
def test_imports_go_one_way(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    report(
        f"{name_of(path)}:{line}: {folder}/ may not import {module}"
        for line, module in imports_of(path)
        if not may_import(folder, module)
    )


@each_module
def test_a_module_can_be_read_at_once(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= LINES_MAX["module"], f"{name_of(path)}: {lines} lines"


@pytest.mark.parametrize("path", SQL, ids=name_of)
def test_a_line_of_sql_fits_on_a_screen(path: Path) -> None:
    lines = enumerate(path.read_text().splitlines(), start=1)
    report(
        f"{name_of(path)}:{number}: {len(line)} characters"
        for number, line in lines
        if len(line) > SQL_WIDTH_MAX
    )


@each_module
def test_a_function_can_be_seen_at_once(path: Path) -> None:
    report(
        f"{name_of(path)}:{function.lineno}: {function.name} has {length_of(function)} lines"
        for function in functions_of(path)
        if length_of(function) > LINES_MAX["function"]
    )


@each_module
def test_a_function_takes_few_arguments(path: Path) -> None:
    report(
        f"{name_of(path)}:{function.lineno}: {function.name} takes {arguments_of(function)} "
        "arguments; pass a frozen value"
        for function in functions_of(path)
        if arguments_of(function) > ARGUMENTS_MAX
    )


@each_module
def test_a_function_is_flat(path: Path) -> None:
    report(
        f"{name_of(path)}:{line}: {function.name} nests deeper than {NESTING_MAX}"
        for function in functions_of(path)
        for line in too_deep(function.body, 1)
    )


@each_shipped_module
def test_nothing_is_hooked_up_after_it_was_made(path: Path) -> None:
    """A callable comes in by the constructor, or by a method that subscribes it."""
    report(
        f"{name_of(path)}:{node.lineno}: {ast.unparse(target)} is assigned from outside"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) not in {"self", "cls"}
        if isinstance(node.value, ast.Lambda) or target.attr in hooks()
    )


@each_shipped_module
def test_clock_and_rng_come_in_by_the_door(path: Path) -> None:
    allowed = {call for place, call, _why in OWN_CLOCK_OR_DICE if place == name_of(path)}
    report(
        f"{name_of(path)}:{node.lineno}: {call}() is called; take it as an argument"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and (call := ast.unparse(node.func)) not in allowed
        if CLOCK_OR_DICE.fullmatch(call) or GLOBAL_DICE.fullmatch(call)
    )


@pytest.mark.parametrize("path", SQL, ids=name_of)
def test_a_file_of_sql_says_what_it_is_about(path: Path) -> None:
    first = path.read_text().partition("\n")[0]
    assert re.fullmatch(r"-- \S.{8,}", first), f"{name_of(path)}:1: no `-- what it is about`"


@each_file
def test_a_file_names_no_host_and_no_machine(path: Path) -> None:
    lines = path.read_text(errors="replace").splitlines()
    report(
        f"{name_of(path)}:{number}: {what}: {found.group()}"
        for number, line in enumerate(lines, start=1)
        for what, unwanted in UNWANTED.items()
        if (found := unwanted.search(line))
    )


def report(faults: Iterable[str]) -> None:
    lines = list(faults)
    assert not lines, "\n" + "\n".join(lines)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@cache
def hooks() -> set[str]:
    """Names of fields that hold a callable, wherever they are declared."""
    declared = [
        (ast.unparse(node.target).removeprefix("self."), ast.unparse(node.annotation))
        for path in SHIPPED
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AnnAssign)
    ]
    others = {name for name, kind in declared if not kind.startswith("Callable[")}
    return {name for name, kind in declared if kind.startswith("Callable[")} - others


def functions_of(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, Function):
            yield node


def length_of(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def arguments_of(function: Function) -> int:
    taken = function.args
    names = [given.arg for given in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every module of this project that is imported, wherever it stands in the file."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if is_own(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names = [alias.name for alias in node.names] if module == "musterd" else []
            full = [f"musterd.{name}" for name in names if name in FOLDERS] or [module]
            yield from ((node.lineno, name) for name in full if is_own(name))


def is_own(module: str) -> bool:
    return module.partition(".")[0] in {"", "musterd", "tests", *FOLDERS}


def may_import(folder: str, module: str) -> bool:
    """Only by the one name `musterd.x`; the bare package carries the version and no more."""
    top, _, rest = module.partition(".")
    return top == "musterd" and (not rest or rest.split(".")[0] in MAY_IMPORT[folder])


def too_deep(body: Sequence[ast.stmt], depth: int) -> Iterator[int]:
    for statement in body:
        if not isinstance(statement, COMPOUND):
            continue
        if depth > NESTING_MAX:
            yield statement.lineno
        for inner, step in bodies_of(statement):
            yield from too_deep(inner, depth + step)


def bodies_of(statement: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], int]]:
    """The bodies of a compound statement, and how much deeper each is; `elif` is no deeper."""
    for name in ("body", "finalbody"):
        yield getattr(statement, name, []), 1
    orelse: list[ast.stmt] = getattr(statement, "orelse", [])
    is_elif = isinstance(statement, ast.If) and len(orelse) == 1 and isinstance(orelse[0], ast.If)
    yield orelse, 0 if is_elif else 1
    for name in ("handlers", "cases"):
        yield from ((part.body, 1) for part in getattr(statement, name, []))
