"""What a handler's context does by itself, and how its errors are read."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

import musterd
from musterd import BudgetExceeded, JobContext, Retry, Snooze
from musterd.workers.context import Facts, ending_of_error, ending_of_value


@attrs.define
class Heard:
    """A link that remembers."""

    logged: list[str] = attrs.field(factory=list[str])
    noted: list[tuple[float, str | None]] = attrs.field(factory=list[tuple[float, str | None]])
    amounts: Mapping[str, float] = attrs.field(factory=dict[str, float])
    seconds: float = 3.0

    def log(self, text: str, level: str = "info") -> None:
        self.logged.append(f"{level} {text}")

    def note(self, percent: float, note: str | None) -> None:
        self.noted.append((percent, note))

    def spent(self, amounts: Mapping[str, float]) -> None:
        self.amounts = dict(amounts)

    def remaining_seconds(self) -> float:
        return self.seconds


def a_job(heard: Heard | None = None, **budgets: float) -> JobContext:
    facts = Facts("kind", None, 1, "t", 2, budgets, {})
    return JobContext(None, 2, lambda: facts, heard or Heard())


def test_the_public_names_are_there() -> None:
    for name in musterd.__all__:
        assert getattr(musterd, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = musterd.Nothing


@pytest.mark.parametrize(("told", "passed"), [(-5, 0.0), (0, 0.0), (33.3, 33.3), (250, 100.0)])
def test_progress_is_kept_between_0_and_100(told: float, passed: float) -> None:
    heard = Heard()
    a_job(heard).progress(told, "n" * 600)
    assert heard.noted == [(passed, "n" * 500)]


def test_progress_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="found nan, wanted a number from 0 to 100"):
        a_job().progress(float("nan"))


def test_remaining_is_never_below_zero() -> None:
    assert a_job(Heard(seconds=-2.0)).remaining() == 0.0


def test_no_phase_has_a_result() -> None:
    assert a_job().phase is None
    with pytest.raises(LookupError, match="kind 'kind' has no phase 'download'"):
        a_job().phase_result("download")


def test_what_is_spent_adds_up_and_has_an_end() -> None:
    heard = Heard()
    job = a_job(heard, tokens=10)
    job.spend(tokens=6, calls=1)
    job.spend(tokens=4)
    assert heard.amounts == {"tokens": 10, "calls": 1}
    with pytest.raises(BudgetExceeded, match="spent 11 of tokens, the budget is 10"):
        job.spend(tokens=1)
    assert heard.amounts["tokens"] == 11


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf")])
def test_what_is_spent_is_a_number_from_0_up(amount: float) -> None:
    with pytest.raises(ValueError, match="wanted a number from 0 up"):
        a_job().spend(tokens=amount)


@pytest.mark.parametrize(
    "amounts",
    [{"calls": 1, "a\0": 1}, {"calls": 1, "\ud800": 1}, {"calls": 1, "n" * 201: 1},
     {"calls": 1, "tokens": 10**400}, {"calls": 1, "tokens": 1e308}, {"calls": 1, "tokens": "x"},
     {"calls": 1, "tokens": None}, {f"name{number}": 1 for number in range(101)}],
)  # fmt: skip
def test_what_no_store_keeps_is_not_spent_and_nothing_with_it(amounts: dict[str, Any]) -> None:
    heard = Heard()
    job = a_job(heard, calls=10)
    job.spend(calls=2)
    with pytest.raises(ValueError, match="spend: found "):
        job.spend(**amounts)
    job.spend(calls=3)
    assert heard.amounts == {"calls": 5}


def test_a_sum_that_no_store_keeps_is_not_spent() -> None:
    heard = Heard()
    job = a_job(heard)
    job.spend(tokens=1e300)
    with pytest.raises(ValueError, match="found tokens=2e\\+300 in all"):
        job.spend(tokens=1e300)
    assert heard.amounts == {"tokens": 1e300}


def test_a_note_has_nothing_that_no_store_keeps() -> None:
    heard = Heard()
    a_job(heard).progress(1, "a\0b\ud800c")
    assert heard.noted == [(1.0, "a\N{REPLACEMENT CHARACTER}b?c")]


@pytest.mark.parametrize("make", [Retry, Snooze])
def test_delays_are_checked_where_they_are_made(make: type[Retry] | type[Snooze]) -> None:
    for wrong in (-1, float("nan"), float("inf"), 1e12):
        with pytest.raises(ValueError, match=f"{make.__name__}: found in_seconds="):
            make(wrong)
    with pytest.raises(TypeError, match="wanted a number of seconds"):
        make("soon")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a user's mistake


def test_an_error_whose_text_fails_has_one_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    ending = ending_of_error(a_job(), Mute())
    assert ending.message == "(its message can't be had: __str__ raised)"
    assert ending.names[0].endswith("Mute")
    assert ending.names[-2:] == ("Exception", "BaseException")


def test_an_overspent_job_fails_though_it_returns() -> None:
    job = a_job(tokens=1)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            job.spend(tokens=2)
    assert ending_of_value(job, "fine").names == ("budget_exceeded",)
    assert ending_of_error(job, ValueError()).names == ("budget_exceeded",)
