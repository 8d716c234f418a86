"""Runs tests on a copy of the tree, and says which of them was the first to fail."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence

import attrs

from tests.mutants.mutant import Edit
from tests.mutants.tree import copied, start
from tests.mutants.trying import SHOWN_LINES, NotRun

PATIENCE_SECONDS = 1200.0
PASSED, FAILED = 0, 1  # how pytest ends
ARGUMENTS = ("-m", "pytest", "-x", "-p", "no:cacheprovider")  # one test that fails is enough
FIRST = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)
# A statement that cannot be run at all is no evidence.
UNREADABLE = re.compile(
    r"psycopg\.errors\.(?:SyntaxError|Undefined\w+|Ambiguous\w+|DatatypeMismatch|GroupingError)"
)


@attrs.frozen
class Noticed:
    """The first test that failed, without its parameters; None = none did."""

    test: str | None
    seconds: float


def try_tests(edits: Sequence[Edit], tests: Sequence[str]) -> Noticed:
    """Raises NotRun."""
    started = time.monotonic()
    arguments = (*ARGUMENTS, "-k", _of_engine(edits), *tests)
    with copied(edits) as tree, start(tree, *arguments) as process:
        try:
            said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise NotRun(f"{' '.join(tests)}: no end in {PATIENCE_SECONDS:.0f} s") from None
    return Noticed(_first(process.returncode, said), time.monotonic() - started)


def _of_engine(edits: Sequence[Edit]) -> str:
    """For `-k`: tests of the other engine say nothing; of what is no engine's, either do."""
    if not edits:
        return ""
    is_postgres = any(edit.file.startswith("store/postgres/") for edit in edits)
    return "not sqlite" if is_postgres else "not postgresql"


def _first(code: int, said: str) -> str | None:
    if code == PASSED:
        return None
    failed, unreadable = FIRST.search(said), UNREADABLE.search(said)
    if code != FAILED or failed is None or unreadable is not None:
        last = "\n".join(said.splitlines()[-SHOWN_LINES:])
        raise NotRun(f"the tests ended with {code}; {unreadable and unreadable[0]}\n{last}")
    return failed[1]
