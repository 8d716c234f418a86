"""Changes that a machine thinks of: one small mistake each, in the text of a module or of SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import attrs

from tests.mutants.mutant import Edit

BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EXTREMES = {"min": "max", "max": "min"}
LEAVES = (ast.Return, ast.Continue, ast.Raise, ast.Break)


@attrs.frozen
class Change:
    """Of a text: `old` stands at `start`. `what` names the sort of mistake."""

    what: str
    start: int
    old: str
    new: str

    def edit(self, file: str, text: str) -> Edit:
        """With as many whole lines around it as make it the only one."""
        end = self.start + len(self.old)
        first, last = text.rfind("\n", 0, self.start) + 1, text.find("\n", end)
        last = len(text) if last < 0 else last
        while text.count(text[first:last]) > 1:
            first = text.rfind("\n", 0, max(0, first - 1)) + 1
            last = min(len(text), text.find("\n", last + 1) % (len(text) + 1))
        new = text[first : self.start] + self.new + text[end:last]
        return Edit(file, text[first:last], new)


def changes(file: str, text: str) -> list[Change]:
    found = _of_python(text) if file.endswith(".py") else _of_sql(text)
    real = {one for one in found if one.new != one.old}
    return sorted(real, key=lambda one: (one.start, one.what, one.new))


# -- Python


@attrs.frozen
class Source:
    """Where the parts of a tree stand in its text, which is ASCII."""

    text: str
    begins: list[int]  # where each line does

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or 0, node.end_col_offset or 0
        start = self.begins[node.lineno - 1] + node.col_offset
        return start, self.begins[end_line - 1] + end_column

    def replace(self, what: str, node: ast.expr | ast.stmt, new: str) -> Change:
        start, end = self.span(node)
        old = self.text[start:end]
        return Change(what, start, old, new.replace("{}", old))


def _of_python(text: str) -> Iterator[Change]:
    begins = [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    source = Source(text, begins)
    for node in ast.walk(ast.parse(text)):
        for changing in (_conditions, _bounds, _calls, _statements):
            yield from changing(source, node)


def _conditions(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        neutral = str(isinstance(node.op, ast.And))
        for value in node.values:
            if not _names_something(value):
                yield source.replace("a condition dropped", value, neutral)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield source.replace("a condition negated", node.test, "not ({})")
    if isinstance(node, ast.If) and _guards(node):
        yield source.replace("a guard lost", node.test, "False")
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            if not _names_something(condition):
                yield source.replace("a condition dropped", condition, "True")


def _guards(node: ast.If) -> bool:
    leaves = isinstance(node.body[-1], LEAVES) and not node.orelse
    return leaves and not _names_something(node.test)


def _names_something(node: ast.AST) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def _bounds(source: Source, node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for (left, right), operator in zip(pairwise(operands), node.ops, strict=True):
        between, end = source.span(left)[1], source.span(right)[0]
        found = re.search(r"[<>]=?", source.text[between:end])
        if isinstance(operator, ORDERED) and found is not None:
            start = between + found.start()
            yield Change("a bound moved", start, found[0], BOUNDS[found[0]])


def _calls(source: Source, node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        other = EXTREMES.get(node.func.id)
        if other is not None:
            yield source.replace("the wrong extreme", node.func, other)
    if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
        value = node.value.value
        if isinstance(value, bool):
            yield source.replace("the opposite", node.value, str(not value))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        between, end = source.span(node.left)[1], source.span(node.right)[0]
        sign = "+" if isinstance(node.op, ast.Add) else "-"
        start = source.text.index(sign, between, end)
        yield Change("the wrong sign", start, sign, "-" if sign == "+" else "+")


def _statements(source: Source, node: ast.AST) -> Iterator[Change]:
    """A call that is only made for what it does, or a field that is set: lost, or too late."""
    if isinstance(node, ast.Lambda | ast.IfExp):  # their body is one expression
        return
    body: list[ast.stmt] = getattr(node, "body", [])
    for statement in body:
        if _does(statement):
            yield source.replace("a statement lost", statement, "pass")
    for first, second in pairwise(body):
        if _does(first) and _does(second):
            start, end = source.span(first)[0], source.span(second)[1]
            between = source.text[source.span(first)[1] : source.span(second)[0]]
            texts = [source.text[slice(*source.span(one))] for one in (second, first)]
            yield Change("an order swapped", start, source.text[start:end], between.join(texts))


def _does(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        called = statement.value
        return isinstance(called.value if isinstance(called, ast.Await) else called, ast.Call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    return bool(targets) and all(isinstance(one, ast.Attribute) for one in targets)


# -- SQL

COMMENT = re.compile(r"--[^\n]*")
# What ends a conjunct at the depth at which it began.
ENDS = re.compile(
    r"\b(?:and|or|group by|order by|limit|returning|for|on|when|then|else|end|union|window|having|"
    r"where|set|from|left|cross|join|as materialized)\b|\n\s*\n"
)
LOCK = r"\bfor (?:no key )?update(?: of [\w, ]+?)?(?= skip|\s*[)\n])"
TWO_KEYS = r"\border by ([\w.]+), ([\w.]+)"
PATTERNS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    ("a bound moved", re.compile(r"(?<=\s)[<>]=?(?=\s)"), lambda found: BOUNDS[found[0]]),
    ("a condition negated", re.compile(r"\bis null\b"), lambda _: "is not null"),
    ("a condition negated", re.compile(r"\bis not null\b"), lambda _: "is null"),
    ("a condition negated", re.compile(r"\bnot exists\b"), lambda _: "exists"),
    ("a lock lost", re.compile(LOCK), lambda _: ""),
    ("a lock lost", re.compile(r"\bskip locked\b"), lambda _: ""),
    ("a limit lost", re.compile(r"\blimit (?:[:\w]+|%\(\w+\)s)"), lambda _: ""),
    ("an order swapped", re.compile(TWO_KEYS), lambda found: f"order by {found[2]}, {found[1]}"),
)


def _of_sql(text: str) -> Iterator[Change]:
    bare = COMMENT.sub(lambda found: " " * len(found[0]), text)
    for what, pattern, changed in PATTERNS:
        for found in pattern.finditer(bare):
            yield Change(what, found.start(), text[slice(*found.span())], changed(found))
    for found in re.finditer(r"\b(?:where|and|on)\s+", bare):
        end = _end_of_conjunct(bare, found.end())
        old = text[found.end() : end].rstrip()
        if old and "between" not in old and "conflict" not in old and "select" not in old[:8]:
            yield Change("a condition dropped", found.end(), old, "true")


def _end_of_conjunct(text: str, start: int) -> int:
    depth, place = 0, start
    while place < len(text):
        if text[place] in "([":
            depth += 1
        elif text[place] in ")]":
            depth -= 1
            if depth < 0:
                return place
        elif depth == 0 and (text[place] in ",;" or _is_end(text, place)):
            return place
        place += 1
    return place


def _is_end(text: str, place: int) -> bool:
    return text[place - 1] in " \n" and ENDS.match(text, place) is not None
