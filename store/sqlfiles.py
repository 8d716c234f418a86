"""SQL lives in files by topic, many statements each; this loads them by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

_BEGINNING = re.compile(r"^-- (part )?([a-z][a-z0-9_]*): ", re.MULTILINE)
_MORE = re.compile(r"\s*/\*more\{\*/.*?/\*\}\*/", re.DOTALL)


@cache
def load_statements(package: str) -> Mapping[str, str]:
    """All statements of an engine (`musterd.store.postgres` or `.sqlite`) by name.

    In the files of its `sql` each begins with a line `-- name: what it promises`. Text that several
    statements share begins with `-- part name: what it is`; `{name}` stands for it. Read once in a
    process, whatever the number of its tenants.
    """
    statements: dict[str, str] = {}
    parts: dict[str, str] = {}
    for text in _texts(files(package) / "sql"):
        for is_part, name, piece in split(text):
            found = parts if is_part else statements
            if name in found:
                raise ValueError(f"{package}: two pieces of SQL are called {name}")
            found[name] = piece
    return MappingProxyType(
        {
            form: text
            for name, whole in statements.items()
            for form, text in _forms(name, _with_parts(whole, parts))
        }
    )


def split(text: str) -> Iterator[tuple[bool, str, str]]:
    """The pieces of a file: whether each is a part, its name, and its text. Lines before the first
    one say what the file is about.
    """
    begun = list(_BEGINNING.finditer(text))
    ends = [match.start() for match in begun[1:]] + [len(text)]
    for match, end in zip(begun, ends, strict=True):
        yield match[1] is not None, match[2], text[match.start() : end].rstrip()


def _texts(folder: Traversable) -> list[str]:
    entries = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return [entry.read_text(encoding="utf-8") for entry in entries]


def _with_parts(text: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
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
