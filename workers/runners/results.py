"""What a program or a server answered, made into a result: JSON if it is JSON, else a string."""

from __future__ import annotations

import json

import attrs

from musterd.store.errors import InputRefused
from musterd.store.payload import PayloadLimits, check_payload
from musterd.workers.outcome import Outcome


@attrs.frozen
class AnswerLimits:
    """How much of an answer is kept: the bounds of `[limits]`."""

    result_bytes_max: int
    log_bytes_max: int
    depth_max: int


def success(answer: bytes, source: str, limits: AnswerLimits) -> Outcome:
    """A success with the answer as its result; a failure `result_invalid` if no store can keep it.

    `source` is what to call the answer: its stdout, its body. An empty one is no result.
    """
    try:
        text = answer.decode().strip()
    except UnicodeDecodeError as error:
        return invalid(f"{source} is not UTF-8: byte {error.start} is {answer[error.start]:#04x}")
    if not text:
        return Outcome("success")
    result = text if _is_json(text) else json.dumps(text, ensure_ascii=False)
    size_bytes = len(result.encode())
    if size_bytes > limits.result_bytes_max:
        return too_large(source, f"{size_bytes} bytes as JSON", limits)
    try:
        check_payload(result, PayloadLimits(limits.result_bytes_max, limits.depth_max))
    except InputRefused as error:
        return invalid(f"{source}: {str(error).removeprefix('payload').removeprefix(': ')}")
    return Outcome("success", result)


def too_large(source: str, found: str, limits: AnswerLimits) -> Outcome:
    wanted = f"at most {limits.result_bytes_max} ([limits] max_result_bytes)"
    return invalid(f"{source} is too large for a result: found {found}, wanted {wanted}")


def invalid(message: str) -> Outcome:
    """The work was done, but its result can't be kept: doing it again would not help."""
    return Outcome("failure", None, "result_invalid", message)


def _is_json(text: str) -> bool:
    """Whether it is one JSON value. One too deep to be read counts, and is refused later."""
    try:
        json.loads(text, parse_constant=_refuse)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no JSON")  # NaN and the infinities
