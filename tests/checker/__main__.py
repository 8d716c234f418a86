"""python -m tests.checker HISTORY.jsonl [--json]"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.checker.history import NotAHistory
from tests.checker.verdict import Judgement, Verdict, judge

SHOWN_MAX = 5  # violations of one invariant
LINE_MAX = 200  # characters of a line of the history
HOLDS, VIOLATED, NO_HISTORY = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.checker", description=__doc__)
    parser.add_argument("history", type=Path)
    parser.add_argument("--json", action="store_true", help="one object, for programs")
    options = parser.parse_args(arguments)
    try:
        with options.history.open(encoding="utf-8") as lines:
            judgement = judge(lines)
    except (NotAHistory, OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"{options.history}: {error}\n")
        return NO_HISTORY
    text = as_json(judgement) if options.json else as_text(judgement, options.history)
    sys.stdout.write(f"{text}\n")
    return VIOLATED if judgement.violated else HOLDS


def as_json(judgement: Judgement) -> str:
    invariants = [
        {
            "name": one.name,
            "says": one.says,
            "finding": one.finding,
            "cases": one.cases,
            "by": one.by,
            "missing": one.missing,
            "count": one.count,
            "violations": [asdict(violation) for violation in one.violations],
        }
        for one in judgement.verdicts
    ]
    whole = {"lines": judgement.lines, "holds": not judgement.violated, "invariants": invariants}
    return json.dumps(whole, indent=1)


def as_text(judgement: Judgement, path: Path) -> str:
    rows = [f"{one.name:<4}{told(one):<58}{one.says}" for one in judgement.verdicts]
    shown = [one for verdict in judgement.verdicts for one in verdict.violations[:SHOWN_MAX]]
    history = lines_of(path, {line for one in shown for line in one.lines})
    for verdict in judgement.verdicts:
        for violation in verdict.violations[:SHOWN_MAX]:
            rows += ["", f"{verdict.name}: {violation.story}"]
            rows += [f"  {line}: {history.get(line, '')}" for line in violation.lines]
        if verdict.count > SHOWN_MAX:
            rows += ["", f"{verdict.name}: {verdict.count - SHOWN_MAX} more"]
    return "\n".join(rows)


def told(one: Verdict) -> str:
    match one.finding:
        case "violated":
            return f"VIOLATED {one.count} x"
        case "ok":
            return f"ok ({one.cases} cases, by {'; '.join(one.by)})"
        case "nothing to check":
            return f"nothing to check (by {'; '.join(one.by)})"
        case "not checked":
            return f"not checked: {one.missing[0]}"


def lines_of(path: Path, wanted: set[int]) -> dict[int, str]:
    if not wanted:
        return {}
    with path.open(encoding="utf-8") as lines:
        numbered = enumerate(lines, start=1)
        found = [(number, text.rstrip("\n")) for number, text in numbered if number in wanted]
    return {number: text[:LINE_MAX] for number, text in found}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
