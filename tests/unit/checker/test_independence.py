"""The checker knows nothing of what it judges."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).resolve().parents[2] / "checker"
MODULES = sorted(CHECKER.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(CHECKER).as_posix())
def test_it_imports_itself_and_the_standard_library_only(path: Path) -> None:
    strange = [name for name in imported_by(path) if not is_allowed(name)]
    assert not strange, f"{path.relative_to(CHECKER)}: imports {', '.join(strange)}"


def test_it_is_found() -> None:
    assert len(MODULES) > 10


def imported_by(path: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return found


def is_allowed(name: str) -> bool:
    if name == "tests.checker" or name.startswith("tests.checker."):
        return True
    return name.partition(".")[0] in sys.stdlib_module_names
