"""What a kind of work does, and what becomes of its failures, in a few words. Pure."""

from __future__ import annotations

import shlex

from musterd.catalog.kinds import (
    Behaviour,
    Command,
    Delay,
    Deterministic,
    HttpCall,
    Pipeline,
    Python,
    WorkKind,
)
from musterd.config.secrets import mask_url
from musterd.store.words import cut, duration_text, one_line

BEHAVIOUR_WIDTH = 60


def behaviour_words(kind: WorkKind) -> str:
    return cut(one_line(_does(kind.behaviour)), BEHAVIOUR_WIDTH)


def _does(behaviour: Behaviour) -> str:
    match behaviour:
        case Python():
            return f"python {behaviour.module}:{behaviour.function} ({behaviour.isolation})"
        case Command():
            return f"command {shlex.join(behaviour.argv)}"
        case HttpCall():
            return f"http {behaviour.method} {mask_url(behaviour.url)}"
        case Pipeline():
            return f"phases {', '.join(behaviour.names)}"
        case Delay():
            if behaviour.seconds is None:
                return f"waits as {behaviour.phase}/{behaviour.field} says"
            return f"waits {duration_text(behaviour.seconds)}"
        case Deterministic():
            return _pretends(behaviour)


def _pretends(does: Deterministic) -> str:
    lasts = duration_text(does.duration_ms_min / 1000)
    if does.duration_ms_max != does.duration_ms_min:
        lasts += f" to {duration_text(does.duration_ms_max / 1000)}"
    first = f", fails {does.fail_first} times first" if does.fail_first else ""
    return f"{does.outcome} after {lasts}{first}" if lasts != "0.0 ms" else f"{does.outcome}{first}"


def retry_words(kind: WorkKind) -> str:
    is_real = not all(isinstance(part.behaviour, Deterministic) for part in kind.parts)
    is_retryable = all(part.retryable for part in kind.parts)
    if not kind.retry.max_retries or not (any(p.retryable for p in kind.parts) or is_real):
        return "none"
    # Real work may ask for it, or `retry_on` names it, or only some phases are retried.
    when = "" if is_retryable else "if asked: "
    pace = f"{kind.retry.backoff} from {duration_text(kind.retry.base_seconds)}"
    return f"{when}{kind.retry.max_retries}, {pace}"
