"""What a program may hand to enqueue_many, and how it is told what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from musterd.store.asking import new_jobs
from musterd.store.errors import InputRefused
from musterd.store.job import NewJob


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
