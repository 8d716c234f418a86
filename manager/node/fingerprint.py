"""What the nodes of one store must agree on, as a short hash. Pure.

It excludes secrets and what may differ between machines: paths, what is broken there, the size of
the crew, where the node listens and how it reaches the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import cast

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.retention import IN_TABLE
from musterd.config.schedules import as_written
from musterd.config.secrets import MASKS, mask_url
from musterd.config.settings import Settings

DIGITS = 12
WHOLE_TABLES = ("retry", "limits", "leases", "duties", "events", "retention")

# Of kinds and tables, by the names of their keys.
_LEFT_OUT = frozenset({"source", "broken", "search_path", "cwd", "secret", "secret_file"})
_SHOWN_AS = MASKS | {
    "on_stale": mask_url,
    "on_delete": mask_url,
    "header_files": sorted,  # which headers come from files
    "archive": lambda place: place if place in ("", IN_TABLE) else "file",
}


def fingerprint(settings: Settings, catalog: Catalog) -> str:
    """`DIGITS` hexadecimal digits, equal where the same configuration is in effect. `settings` are
    the node's own. Other versions of musterd may give other digits.
    """
    text = json.dumps(_whole(settings, catalog), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _whole(settings: Settings, catalog: Catalog) -> dict[str, object]:
    webhooks = settings.webhooks
    # Where the secret comes from may differ, not whether there is one.
    is_signed = bool(webhooks.secret or webhooks.secret_file)
    return {
        **{table: _plain(getattr(settings, table)) for table in WHOLE_TABLES},
        "kinds": _plain(catalog),
        "lease_timeout_seconds": _plain(settings.workers.lease_timeout_seconds),
        "schedules": _plain({name: as_written(one) for name, one in settings.schedules.items()}),
        "tenants": {
            name: {"schema": tenant.place.schema, "limits": _plain(tenant.limits)}
            for name, tenant in settings.tenants.items()
        },
        "webhooks": {"signed": is_signed, "table": _plain(webhooks)},
    }


def _plain(value: object) -> object:
    """JSON with one spelling per value. Raises TypeError for objects of other types."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        named = cast("Mapping[str, object]", value)
        return {name: _plain(each) for name, each in named.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in cast("tuple[object, ...]", value)]
    if attrs.has(type(value)):
        keys = _keys(cast("attrs.AttrsInstance", value))
        return {"is": type(value).__name__, "keys": keys}
    raise TypeError(f"found {type(value).__name__}, wanted what JSON can hold")


def _keys(table: attrs.AttrsInstance) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, key in attrs.fields_dict(type(table)).items():
        if name not in _LEFT_OUT:
            shown_as = key.metadata.get("mask") or _SHOWN_AS.get(name)
            value = getattr(table, name)
            found[name] = _plain(shown_as(value) if shown_as is not None else value)
    return found
