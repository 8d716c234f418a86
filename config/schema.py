"""JSON Schema for editors, made from the declarations of the keys. It says what a single value may
be; what must hold between keys, `musterd config check` says.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin

import attrs
from attrs import AttrsInstance

from musterd.config import schedules, tenants
from musterd.config.document import read_document
from musterd.config.load import SHIPPED_FILE
from musterd.config.settings import Limits, TenantPlace, TenantWorkers, sections
from musterd.config.strict import Key, written_keys
from musterd.config.tenant_names import NAME
from musterd.config.validators import Between

Schema: TypeAlias = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
# Of keys whose type alone does not say how they are written.
_WRITTEN: Mapping[str, Schema] = {"secret": {"anyOf": [{"type": "string"}, TEXTS]}, "payload": {}}
_PLAIN: Mapping[object, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Path: {"type": "string", "minLength": 1},
}


def settings_schema() -> Schema:
    """Of a configuration file."""
    defaults = read_document(SHIPPED_FILE).data
    tables: Schema = {}
    for name, shape in sections().items():
        tables[name] = table_schema(shape, _WRITTEN, cast(Mapping[str, object], defaults[name]))
    place, limits = table_schema(TenantPlace, _WRITTEN), table_schema(Limits, _WRITTEN)
    place["properties"] |= {"workers": table_schema(TenantWorkers, _WRITTEN), "limits": limits}
    schedule = table_schema(schedules.ScheduleTable, _WRITTEN)
    tables[tenants.TABLE] = named_tables(NAME.pattern, place)
    tables[schedules.TABLE] = named_tables(schedules.TABLES.fits.pattern, schedule)
    return document_schema("musterd.toml", tables)


def document_schema(title: str, tables: Schema) -> Schema:
    return {"$schema": DRAFT, "title": title, **_object(tables)}


def named_tables(pattern: str, one: Schema) -> Schema:
    """Tables whose names are free, as far as the pattern goes."""
    return {**_object({}), "patternProperties": {f"^(?:{pattern})$": one}}


def table_schema(
    shape: type[AttrsInstance],
    written: Mapping[str, Schema],
    defaults: Mapping[str, object] | None = None,
) -> Schema:
    """`written` has the keys that have a reader of their own. A missing one is an error."""
    found: Schema = {}
    for name, key in written_keys(shape).items():
        found[name] = _key_schema(key, written)
        if what := key.metadata.get("what"):
            found[name]["description"] = what
        if defaults is not None and name in defaults:
            found[name]["default"] = defaults[name]
    return _object(found)


def _object(properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _key_schema(key: Key, written: Mapping[str, Schema]) -> Schema:
    own = key.metadata.get("read") is not None
    found = dict(written[key.name] if own else _type_schema(key.type, written))
    rule = getattr(key.validator, "validator", key.validator)  # of an optional key: within
    return found | _bounds(rule) if isinstance(rule, Between) else found


def _bounds(rule: Between) -> Schema:
    between: Schema = {"minimum": rule.low, "maximum": rule.high}
    if rule.special is None or rule.low <= rule.special <= rule.high:
        return between
    return {"anyOf": [{"const": rule.special}, between]}


def _type_schema(kind: object, written: Mapping[str, Schema]) -> Schema:
    within = partial(_type_schema, written=written)
    if get_origin(kind) in (Union, UnionType):  # None = not set, which TOML cannot write
        (kind,) = [each for each in get_args(kind) if each is not NoneType]
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": within(get_args(kind)[0])}
    if isinstance(kind, type) and attrs.has(kind):
        table = table_schema(kind, written)
        keys = written_keys(kind).items()
        required = [name for name, key in keys if key.default is attrs.NOTHING]
        return {**table, "required": required} if required else table
    return _PLAIN[kind]
