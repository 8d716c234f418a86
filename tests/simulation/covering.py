"""Which lines of the product simulations reach, and which they never do: `--covered`."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

import attrs

ROOT = Path(__file__).resolve().parents[2]
# What nodes do about jobs.
OWNERS = ("manager/", "store/", "workers/")
NOT_SIMULATED = (
    # Sockets, files, child processes, signals, and the other engine.
    *("store/postgres/", "store/client.py", "store/sqlite/client.py", "store/opening.py"),
    *("store/scratch.py", "store/sqlite/scratch.py", "store/sqlite/hints.py", "workers/runners/"),
    *(
        "workers/shortage.py",
        "manager/node/systemd.py",
        "manager/log.py",
        "manager/webhooks/courier.py",
    ),
    # What people are shown.
    *("store/why", "store/report.py", "store/words.py", "store/estimate.py", "store/reasons.py"),
    *("store/overview.py", "store/sqlite/overview.py", "store/sqlite/why.py", "store/health.py"),
    *(
        "store/sqlite/health.py",
        "store/event_types.py",
        "manager/metrics/",
        "manager/node/status.py",
    ),
    *("manager/events/feed.py", "manager/events/source.py"),
    # Several tenants, of which a simulated node has one.
    *("store/idle_tenant_scan.py", "store/sqlite/idle_tenant_scan.py"),
    "manager/tenancy/idle_tenant_scan.py",
)

CONSTANTS_OF_A_STUB = 2  # a docstring, and None: a method of a protocol

Place: TypeAlias = tuple[str, int]  # a file, and where a function begins in it


@attrs.define(eq=False)
class Covered:
    """`left`: of each function that was called, the lines that were not reached."""

    left: dict[Place, set[int]] = attrs.field(factory=dict[Place, set[int]])
    _known: dict[int, tuple[CodeType, set[int]]] = attrs.field(
        factory=dict[int, tuple[CodeType, set[int]]]
    )

    def called(self, frame: FrameType, event: str, argument: object) -> Any:
        """For `sys.settrace`. Functions of which nothing is left to reach cost nothing further."""
        del event, argument
        found = self._known.get(id(frame.f_code))
        left = self._begin(frame.f_code) if found is None else found[1]
        return self._reached if left else None

    def _reached(self, frame: FrameType, event: str, argument: object) -> Any:
        del argument
        left = self._known[id(frame.f_code)][1]
        if event == "line":
            left.discard(frame.f_lineno)
        return self._reached if left else None

    def _begin(self, code: CodeType) -> set[int]:
        file = name_of(code)
        left = lines_of(code) if file is not None else set[int]()
        if file is not None:
            left = self.left.setdefault((file, code.co_firstlineno), left)
        self._known[id(code)] = (code, left)
        return left


@contextmanager
def watching() -> Generator[Covered]:
    covered = Covered()
    sys.settrace(covered.called)
    try:
        yield covered
    finally:
        sys.settrace(None)


def name_of(code: CodeType) -> str | None:
    """Of a file of the product that is looked at, below the root."""
    path = Path(code.co_filename).resolve()
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return name if name.startswith(OWNERS) and not name.startswith(NOT_SIMULATED) else None


def lines_of(code: CodeType) -> set[int]:
    """Those of its body."""
    lines = {line for _, _, line in code.co_lines() if line is not None}
    return lines - {code.co_firstlineno} if len(lines) > 1 else set()


def report(covered: Covered) -> Iterator[str]:
    """What was never reached, function by function, and how much that is."""
    total = missed = 0
    missing: dict[str, list[str]] = defaultdict(list)
    for file, code in _functions():
        lines = lines_of(code)
        left = covered.left.get((file, code.co_firstlineno), lines)
        total, missed = total + len(lines), missed + len(left)
        if left:
            where = "never called" if left == lines else f"lines {_spans(sorted(left))}"
            missing[file].append(f"    {code.co_qualname}: {where}")
    for file, functions in missing.items():
        yield from (file, *functions)
    yield f"{total - missed:,} of {total:,} lines reached ({100 * (total - missed) / total:.0f} %)"


def _functions() -> Iterator[tuple[str, CodeType]]:
    for owner in OWNERS:
        for path in sorted((ROOT / owner).rglob("*.py")):
            module = compile(path.read_text(), str(path), "exec")
            if (file := name_of(module)) is not None:
                yield from ((file, code) for code in _within(module))


def _within(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            is_class = "__qualname__" in part.co_names and not part.co_varnames
            says_nothing = not part.co_names and len(part.co_consts) <= CONSTANTS_OF_A_STUB
            if not (is_class or says_nothing or part.co_name.startswith("<")):
                yield part
            yield from _within(part)


def _spans(lines: Sequence[int]) -> str:
    found: list[list[int]] = []
    for line in lines:
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
