"""The trace that a caller is in, as W3C writes it. OpenTelemetry is never imported here: it is
looked at where the caller's own program has loaded it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from musterd.store.input import JobWanted

API = "opentelemetry.trace"


def traceparent_of(context: Any) -> str:
    """Of a span's context."""
    ids = f"{context.trace_id:032x}-{context.span_id:016x}"
    return f"00-{ids}-{context.trace_flags & 0xFF:02x}"


def traceparent_here() -> str | None:
    """Of the span that the caller is in; None = there is none."""
    api = sys.modules.get(API)
    if api is None:
        return None
    context = api.get_current_span().get_span_context()
    return traceparent_of(context) if context.is_valid else None


def traced(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a job, with the caller's trace unless they name one."""
    here = traceparent_here()
    if here is None or options.get("traceparent") is not None:
        return options
    return {**options, "traceparent": here}


def traced_jobs(wanted: Sequence[JobWanted]) -> Sequence[JobWanted]:
    """As `traced`, of each. What is no job is left for others to refuse."""
    if traceparent_here() is None:
        return wanted
    return [_traced_job(one) for one in wanted]


def _traced_job(one: JobWanted) -> JobWanted:
    if isinstance(one, Mapping):
        return traced(one)
    if type(one) is tuple and len(one) == len(("kind", "payload")):
        return traced(dict(zip(("kind", "payload"), one, strict=True)))
    return one
