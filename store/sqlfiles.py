"""SQL lives in files, one statement each; this loads them by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_MORE = re.compile(r"\s*/\*more\{\*/.*?/\*\}\*/", re.DOTALL)


@cache
def load_statements(package: str) -> Mapping[str, str]:
    """All statements of an engine (`musterd.store.postgres` or `.sqlite`): file name without `.sql`
    -> text. Read once in a process, whatever the number of its tenants.
    """
    folder = files(package) / "sql"
    return MappingProxyType(
        {
            name: text
            for entry in folder.iterdir()
            if entry.name.endswith(".sql")
            for name, text in _forms(
                entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")
            )
        }
    )


def _forms(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The statement, and where parts of it stand between `/*more{*/` and `/*}*/` the one without
    them, called `NAME_plain`: what is hardly ever needed costs the server even when it does
    nothing.
    """
    yield name, text
    plain = _MORE.sub("", text)
    if plain != text:
        yield f"{name}_plain", plain.replace(f"-- {name}:", f"-- {name}_plain:", 1)
