"""JSON Schema of catalog files for editors, made from the tables of kinds."""

from collections.abc import Mapping

from musterd.catalog.load import NAME
from musterd.catalog.tables import (
    DURATION_MS_MAX,
    PHASES_MAX,
    HttpTable,
    KindTable,
    PhaseTable,
    RlimitTable,
)
from musterd.config.retention import Ages
from musterd.config.schema import TEXTS, Schema, document_schema, named_tables, table_schema
from musterd.config.settings import Retry

_MILLISECONDS: Schema = {"type": "integer", "minimum": 0, "maximum": DURATION_MS_MAX}
_HEADERS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_AMOUNTS: Schema = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}


def catalog_schema() -> Schema:
    written = _written()
    phase = {**table_schema(PhaseTable, written), "required": ["name"]}
    phases: Schema = {"type": "array", "items": phase, "minItems": 1, "maxItems": PHASES_MAX}
    kind = table_schema(KindTable, {**written, "phases": phases})
    return document_schema("musterd catalog", {"kinds": named_tables(NAME.pattern, kind)})


def _written() -> Mapping[str, Schema]:
    """Keys that have a reader of their own, as they are written."""
    http = table_schema(HttpTable, {"headers": _HEADERS, "header_files": _HEADERS})
    pair: Schema = {"type": "array", "items": _MILLISECONDS, "minItems": 2, "maxItems": 2}
    return {
        "duration_ms": {"anyOf": [_MILLISECONDS, pair]},
        "python": {"type": "string", "pattern": "^[^:/]+:[^:/]+$"},
        "command": {**TEXTS, "minItems": 1},
        "umask": {"type": "string", "pattern": "^0?[0-7]{1,3}$"},
        "delay_from": {"type": "string", "pattern": "^[^/]+/.+$"},
        "http": {**http, "required": ["url"]},
        "rlimits": table_schema(RlimitTable, {}),
        "retention": table_schema(Ages, {}),
        "retry": table_schema(Retry, {}),
        "budgets": _AMOUNTS,
    }
