"""SQL lives in files, one statement each; this loads them by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

_MORE = re.compile(r"\s*/\*more\{\*/.*?/\*\}\*/", re.DOTALL)


@cache
def load_statements(package: str) -> Mapping[str, str]:
    """All statements of an engine (`musterd.store.postgres` or `.sqlite`): file name without `.sql`
    -> text. Read once in a process, whatever the number of its tenants.
    """
    folder = files(package) / "sql"
    parts = _texts(folder / "parts") if (folder / "parts").is_dir() else {}
    return MappingProxyType(
        {
            form: text
            for name, whole in _texts(folder).items()
            for form, text in _forms(name, _with_parts(whole, parts))
        }
    )


def _texts(folder: Traversable) -> dict[str, str]:
    return {
        entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }


def _with_parts(text: str, parts: Mapping[str, str]) -> str:
    """What several statements have in common stands in `sql/parts`, and in each as `{NAME}`."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part.rstrip())
    return text


def _forms(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The statement, and where parts of it stand between `/*more{*/` and `/*}*/` the one without
    them, called `NAME_plain`: what is hardly ever needed costs the server even when it does
    nothing.
    """
    yield name, text
    plain = _MORE.sub("", text)
    if plain != text:
        yield f"{name}_plain", plain.replace(f"-- {name}:", f"-- {name}_plain:", 1)
