"""The shape of the answer to "why is my job not running?", as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

from musterd.store.reasons import Code


def _time(*, maybe: bool = False) -> Mapping[str, object]:
    return {"type": ["string", "null"] if maybe else "string", "format": "date-time"}


REASON_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "required": ["code", "text"],
    "additionalProperties": False,
    "properties": {
        "code": {"type": "string", "enum": [code.value for code in Code]},
        "text": {"type": "string"},
        "who": {"type": "string"},
        "what": {"type": "object"},
        "since": _time(),
        "until": _time(),
        "do": {"type": "string"},
    },
}

START_SCHEMA: Mapping[str, object] = {
    "type": ["object", "null"],
    "required": ["earliest", "latest", "unmeasured_kinds"],
    "additionalProperties": False,
    "properties": {
        "earliest": _time(),
        "latest": _time(maybe=True),
        "unmeasured_kinds": {"type": "array", "items": {"type": "string"}},
    },
}

_PROPERTIES: Mapping[str, object] = {
    "id": {"type": "integer"},
    "kind": {"type": "string"},
    "tenant": {"type": "string"},
    "state": {"type": "string"},
    "at": _time(),
    "reasons": {"type": "array", "minItems": 1, "items": REASON_SCHEMA},
    "position": {"type": ["integer", "null"]},
    "position_exact": {"type": ["boolean", "null"]},
    "position_of": {"type": ["integer", "null"]},
    "estimated_start": START_SCHEMA,
}

WHY_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "required": list(_PROPERTIES),
    "additionalProperties": False,
    "properties": _PROPERTIES,
}
