"""Lines about a job name it by the same fields everywhere: job_id, kind and attempt."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WRITERS = {"event", "event_of_list", "extra"}
ABOUT_A_JOB = {"job_id", "kind", "attempt"}
# A message knows its job's id and attempt; to look for the kind would cost a read for each line.
WITHOUT_KIND = {"manager/webhooks/postman.py", "manager/webhooks/courier.py"}
WRONG_NAMES = {"job", "id", "jobid", "job_kind"}


def names_in(node: ast.AST) -> set[str]:
    """Names of fields, in calls and in the dicts that are spread into them."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Dict):
            found |= {str(key.value) for key in each.keys if isinstance(key, ast.Constant)}
        elif isinstance(each, ast.Call) and called(each) in WRITERS:
            found |= {keyword.arg for keyword in each.keywords if keyword.arg is not None}
    return found


def called(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def functions() -> Iterator[tuple[str, ast.AST, str]]:
    paths = [
        path
        for folder in ("manager", "web", "console", "workers")
        for path in (ROOT / folder).rglob("*.py")
    ]
    for path in sorted(paths):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path.relative_to(ROOT).as_posix(), node, node.name


def writers() -> Iterator[tuple[str, str, set[str]]]:
    """Every function that writes a line: file, name, fields."""
    for path, node, name in functions():
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        if any(called(call) in WRITERS for call in calls):
            yield path, name, names_in(node)


def test_there_are_lines_about_jobs() -> None:
    assert sum("job_id" in fields for _, _, fields in writers()) >= 4


def test_a_line_about_a_job_has_all_of_its_fields() -> None:
    for path, function, fields in writers():
        wanted = ABOUT_A_JOB - ({"kind"} if path in WITHOUT_KIND else set())
        if "job_id" in fields or "attempt" in fields:
            assert wanted <= fields, f"{path}: {function}: {wanted - fields} are missing"


def test_no_field_has_another_name_for_it() -> None:
    for path, function, fields in writers():
        assert not fields & WRONG_NAMES, f"{path}: {function}"
