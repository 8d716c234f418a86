"""What a program may hand to enqueue_many, and how it is told what it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from musterd.store.errors import InputRefused
from musterd.store.input import new_jobs
from musterd.store.jobs import NewJob


def test_pairs_and_mappings_mean_the_same() -> None:
    assert new_jobs([("a", {"x": 1}), {"kind": "a", "payload": {"x": 1}}]) == [
        NewJob("a", '{"x":1}'),
        NewJob("a", '{"x":1}'),
    ]


@pytest.mark.parametrize("odd", ["report", ["a", {}], ("a",), ("a", {}, 3), 7, None])
def test_what_is_neither_is_refused_with_its_place(odd: Any) -> None:
    with pytest.raises(InputRefused, match=r"^job 2: found .*, wanted a pair of kind and payload"):
        new_jobs([("a", {}), odd])


def test_a_fault_within_a_job_names_the_job_and_the_option() -> None:
    with pytest.raises(InputRefused, match=r"^job 1: priority: found 99999, wanted"):
        new_jobs([{"kind": "a", "priority": 99999}])


PAYLOADS: list[Any] = [
    *("", 'ä "\\\n\u2028\U0001f600', 10**30, -0.0, 1e300, True, [], {}, [1, (2, [3.5, None])]),
    {"a": {"b": []}, 1: 2, 2.5: 3, None: 4, False: 5},
    {"long": ["x" * 99] * 99},
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_is_written_as_the_json_module_writes_it(payload: Any) -> None:
    written = json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    assert new_jobs([("a", payload)]) == [NewJob("a", written)]


def test_a_payload_that_contains_itself_is_refused_and_harms_no_other() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputRefused, match=r"^job 1: payload: .*recursion"):
        new_jobs([("a", endless)])
    endless[:] = [1]
    assert new_jobs([("a", endless)]) == [NewJob("a", "[1]")]


def test_a_part_of_many_counts_from_its_own_place() -> None:
    with pytest.raises(InputRefused, match=r"^job 502: kind: found 7"):
        new_jobs([("a", 1), (7, 1)], before=500)  # type: ignore[list-item]  # what is tested
