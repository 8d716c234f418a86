"""SQL lives in files by topic, many statements each; this loads them by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

_BEGINNING = re.compile(r"^-- (part )?([a-z][a-z0-9_]*): ", re.MULTILINE)


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
    return MappingProxyType({name: _whole(text, parts) for name, text in statements.items()})


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


def _whole(text: str, parts: Mapping[str, str]) -> str:
    """With its parts; of the comments only the first line, by which servers show it."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", _without_comments(part))
    name, _, rest = text.partition("\n")
    return f"{name}\n{_without_comments(rest)}"


def _without_comments(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))
