"""What is no history is refused with its line; what is not declared is not evidence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.checker.__main__ import main
from tests.checker.examples import EXAMPLES
from tests.checker.history import EVIDENCE, FIELDS, OPERATIONS, NotAHistory
from tests.checker.statements import STATEMENTS
from tests.checker.table import ALL
from tests.checker.verdict import judge
from tests.checker.writing import OF_OPERATION, OF_RECORD

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "tests/checker/README.md").read_text()
HEADER: dict[str, Any] = {"record": "header", "format": 1, "records": []}
CALL = {"record": "call", "seq": 1, "t": 0, "id": 1, "who": "client:a", "op": "enqueue"}


def lines_of(*records: dict[str, Any]) -> list[str]:
    return [json.dumps(record) for record in records]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "the file is empty"),
        (["{"], "line 1: no JSON"),
        (["[]"], "line 1: a JSON object is wanted"),
        (lines_of(CALL), "line 1: a history begins with its one header"),
        (lines_of(HEADER, HEADER), "line 2: a history begins with its one header"),
        (lines_of({**HEADER, "format": 2}), "line 1: format 2; 1 is wanted"),
        (lines_of({**HEADER, "records": ["gossip"]}), "line 1: records has ['gossip']"),
        (lines_of(HEADER, {"record": "gossip"}), "line 2: record is 'gossip'"),
        (lines_of(HEADER, {**CALL, "seq": "1"}), "line 2: seq of call is '1'"),
        (lines_of(HEADER, CALL, {**CALL, "id": 2}), "line 3: seq 1 after 1"),
        (lines_of(HEADER, {**CALL, "op": "dance"}), "line 2: op is 'dance'"),
        (lines_of(HEADER, {**CALL, "op": "cancel"}), "line 2: job of call is None"),
        (
            lines_of(HEADER, CALL, {"record": "reply", "seq": 2, "t": 0, "id": 1, "status": "hm"}),
            "line 3: status is 'hm'",
        ),
    ],
)
def test_what_is_no_history_is_refused(lines: list[str], said: str) -> None:
    with pytest.raises(NotAHistory, match=re.escape(said)):
        judge(lines)


def test_without_evidence_nothing_is_ok() -> None:
    findings = {one.finding for one in judge(lines_of(HEADER)).verdicts}
    assert findings == {"not checked"}


def test_what_is_not_declared_is_said_to_be_missing() -> None:
    (example,) = [one for one in EXAMPLES if one.name.endswith("a_late_settlement_is_taken")]
    history = example.history(commits=False)
    assert judge(history.lines()).violated == {"S6"}
    history.header["records"] = ["clients"]
    verdict = next(one for one in judge(history.lines()).verdicts if one.name == "S6")
    assert verdict.finding == "not checked"
    assert verdict.missing == ["no records of claims", "no records of events"]


def test_every_invariant_is_in_the_table_once_and_in_order() -> None:
    names = list(dict.fromkeys(way.name for way in ALL))
    wanted = [f"S{number}" for number in range(1, 22)] + [f"L{number}" for number in range(1, 10)]
    assert names == [*wanted, *(f"M{number}" for number in range(1, 6))]
    assert names == list(STATEMENTS)


def test_the_page_names_every_record_operation_evidence_and_invariant() -> None:
    words = set(re.findall(r"[\w.]+", README))
    for known in (FIELDS, OPERATIONS, EVIDENCE, OF_OPERATION, OF_RECORD):
        assert [word for word in known if word not in words] == []
    rows = dict(re.findall(r"^\| ([SLM]\d+) \| ([^|]+) \|", README, re.MULTILINE))
    assert {way.name: way.says for way in ALL} == rows


def test_the_page_says_what_each_invariant_needs() -> None:
    for way in ALL:
        (row,) = re.findall(rf"^\| {way.name} \|.*$", README, re.MULTILINE)
        for word in (*way.needs, *way.wants):
            assert f"`{word}`" in row, (way.__name__, word)


def test_the_program_tells_the_story_with_the_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = [one for one in EXAMPLES if one.name.endswith("a_late_settlement_is_taken")]
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(example.history(commits=False).lines()))
    assert main([str(path)]) == 1
    told = capsys.readouterr().out
    assert "S6  VIOLATED 1 x" in told
    assert "settle of job 1 by north was taken under the token of attempt 1, after south" in told
    assert '"op":"settle"' in told
    assert main([str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["holds"]
    (violated,) = [one for one in found["invariants"] if one["finding"] == "violated"]
    assert (violated["name"], violated["violations"][0]["job"]) == ("S6", 1)


def test_the_program_runs_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    (example,) = [one for one in EXAMPLES if one.name.endswith("all_is_counted")]
    path.write_text("\n".join(example.history(commits=True).lines()))
    command = [sys.executable, "-S", "-m", "tests.checker", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "S20 ok (" in done.stdout
    path.write_text("{}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "line 1: record is None" in done.stderr
