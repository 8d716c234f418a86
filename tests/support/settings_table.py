"""The reference of docs/configuration.md, made from the shipped settings themselves.

`python -m tests.support.settings_table` brings the page up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from musterd.config import settings as shapes
from musterd.config.load import SHIPPED_FILE
from musterd.config.reload import applies
from musterd.config.settings import keys
from musterd.config.toml_text import plain_number
from musterd.config.validators import Between
from tests.support.pages import DOCS

PAGE = DOCS / "configuration.md"

_BETWEEN_MARKS = re.compile(
    r"(<!-- settings: begin.*? -->\n).*?(<!-- settings: end -->)", re.DOTALL
)
_TABLE = re.compile(r"^\[(\w+)\]")
_SETTING = re.compile(r"^(\w+) = (.*?)(?:\s+# (.*))?$")
_TEXTS = {
    "store.url": "URL",
    "store.url_file": "path or credential",
    "store.listen_url": "PostgreSQL URL",
    "store.schema": "`a-z`, `0-9`, `_`; a letter first",
    "webhooks.url": "URL",
    "webhooks.secret": "`whsec_` and base64, or a list",
    "webhooks.secret_file": "path or credential",
    "http.listen": '`host:port`, `unix:/path`, `""`',
    "http.token": "text",
    "http.token_file": "path or credential",
    "http.tokens": "list of tables",
    "metrics.wait_buckets_seconds": "rising numbers above 0",
    "metrics.run_buckets_seconds": "rising numbers above 0",
    "retention.succeeded": "table of these two keys",
    "retention.failed": "table of these two keys",
    "retention.canceled": "table of these two keys",
    "retention.on_stale": 'URL, `"module:function"`',
    "retention.on_delete": 'URL, `"module:function"`',
    "retention.archive": '`"table"`, whole path',
    "catalog.paths": "list of paths",
    "catalog.python_path": "list of folders",
    "catalog.python": "path or name",
}


def renewed(page: str) -> str:
    """The page with the reference as it has to be, between its two marks."""
    assert _BETWEEN_MARKS.search(page), "the page has lost its marks"
    return _BETWEEN_MARKS.sub(lambda marks: f"{marks[1]}\n{settings_tables()}\n{marks[2]}", page)


def settings_tables() -> str:
    """One table a section, a line a key: name, default, what is allowed, when a reload applies
    it, what it means.
    """
    lines: list[str] = []
    for section, name, default, why in shipped():
        if not name:
            lines += ["", f"### `[{section}]`", ""]
            lines += ["| key | default | allowed | reload | what it is |", "|---|---|---|---|---|"]
        else:
            allowed = _allowed(f"{section}.{name}")
            meaning = why.replace("|", "\\|")
            when = applies(f"{section}.{name}")
            lines.append(f"| `{name}` | `{default}` | {allowed} | {when} | {meaning} |")
    return "\n".join(lines).strip() + "\n"


def shipped() -> Iterator[tuple[str, str, str, str]]:
    """Each key of default.toml with its comment; one that has none takes the comment above."""
    section = above = ""
    for line in Path(SHIPPED_FILE).read_text("utf-8").splitlines():
        if found := _TABLE.match(line):
            section, above = found[1], ""
            yield section, "", "", ""
        elif section and line.startswith("# "):
            above = line.removeprefix("# ")
        elif found := _SETTING.match(line):
            yield section, found[1], found[2].strip(), found[3] or above


def _allowed(key: str) -> str:
    attribute = keys()[key]
    if key in _TEXTS:
        return _TEXTS[key]
    kind: Any = getattr(shapes, str(attribute.type), attribute.type)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    if kind is bool:
        return "`true`, `false`"
    bounds = attribute.validator
    assert isinstance(bounds, Between), f"{key}: say in _TEXTS what is allowed"
    whole = "whole, " if kind is int else ""
    special = "" if bounds.special is None else f"{plain_number(bounds.special)}, or "
    return f"{whole}{special}{_number(bounds.low)} to {_number(bounds.high)}"


def _number(value: float) -> str:
    return f"{plain_number(value):,}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
