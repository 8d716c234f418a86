"""The effective settings for readers: as a tree or as TOML, secrets masked."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from attrs import AttrsInstance

from musterd.config import schedules
from musterd.config.changes import shown
from musterd.config.load import Loaded, load
from musterd.config.settings import Settings, Tenant, TenantWorkers, sections
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.tenants import TABLE
from musterd.config.toml_text import toml_text

Leaf: TypeAlias = tuple[str, str, object, str]  # table, key, value, origin


def as_tree(loaded: Loaded, origin: bool) -> dict[str, dict[str, Any]]:
    """The TOML as nested objects; with `origin`, each leaf is {"value", "origin"}."""
    tree: dict[str, dict[str, Any]] = {section: {} for section in sections()}
    for header, name, value, source in _leaves(loaded):
        table: dict[str, Any] = tree
        for part in header.split("."):
            table = table.setdefault(part, {})
        table[name] = {"value": value, "origin": source} if origin else value
    return tree


def in_effect(settings: Settings) -> dict[str, dict[str, Any]]:
    """The same tree of settings alone: where their values come from is not known."""
    return as_tree(Loaded(settings, {}), origin=False)


def count_changed(loaded: Loaded) -> int:
    """How many settings have another value than the shipped one."""
    as_shipped = load(None, {}, [], system_file=Path(os.devnull))
    shipped = {(header, name): value for header, name, value, _ in _leaves(as_shipped)}
    return sum(
        source != "default" and ((header, name) not in shipped or shipped[header, name] != value)
        for header, name, value, source in _leaves(loaded)
    )


def as_text(loaded: Loaded, origin: bool) -> str:
    """Valid TOML; with `origin`, a comment after each key says where its value comes from."""
    lines: list[str] = []
    header = ""
    for section, name, value, source in _leaves(loaded):
        if section != header:
            lines += ["", f"[{section}]"] if lines else [f"[{section}]"]
            header = section
        printable = "".join(each if each.isprintable() else "?" for each in source)
        comment = f"  # {printable}" if origin else ""
        lines.append(f"{name} = {toml_text(value)}{comment}")
    return "\n".join(lines) + "\n"


def _leaves(loaded: Loaded) -> Iterator[Leaf]:
    for section in sections():
        yield from _table(section, getattr(loaded.settings, section), loaded)
    for tenant in loaded.settings.tenants.values():
        yield from _tenant(tenant, loaded)
    for schedule in loaded.settings.schedules.values():
        header = f"{schedules.TABLE}.{schedule.name}"
        for name, value in schedules.as_written(schedule).items():
            yield header, name, value, loaded.origins.get(f"{header}.{name}", "default")


def _tenant(tenant: Tenant, loaded: Loaded) -> Iterator[Leaf]:
    """Its effective settings; of its limits only those that differ from the node's."""
    header = f"{TABLE}.{tenant.name}"
    if tenant.name != DEFAULT_TENANT:
        yield from _table(header, tenant.place, loaded)
    node = loaded.settings
    floor, most = node.workers.default_count, node.workers.max_count
    is_named = any(key.startswith(f"{header}.") for key in loaded.origins)
    if tenant.name != DEFAULT_TENANT or is_named or tenant.workers != TenantWorkers(floor, most):
        yield from _table(f"{header}.workers", tenant.workers, loaded)
    for leaf in _table(f"{header}.limits", tenant.limits, loaded):
        name = leaf[1]
        differs = getattr(tenant.limits, name) != getattr(node.limits, name)
        if differs or f"{header}.limits.{name}" in loaded.origins:
            yield leaf


def _table(header: str, table: AttrsInstance, loaded: Loaded) -> Iterator[Leaf]:
    for name, attribute in attrs.fields_dict(type(table)).items():
        value = shown(attribute, getattr(table, name))
        yield header, name, value, loaded.origins.get(f"{header}.{name}", "default")
