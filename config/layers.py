"""The layers above the files: the environment and `--set`, each variable a document of its own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast, get_origin

import attrs
import tomli

from musterd.config import schedules, tenants
from musterd.config.document import Document
from musterd.config.faults import Fault
from musterd.config.settings import keys
from musterd.config.strict import Key

_PREFIX = "MUSTERD_"
_NAMED = {tenants.TABLE: tenants.attribute_of, schedules.TABLE: schedules.attribute_of}
_ASSIGNMENT = re.compile(r"([^=.]+)\.([^=]+)=(.*)", re.DOTALL)


def from_environment(environ: Mapping[str, str], folder: Path) -> Iterator[Document | Fault]:
    """Gives a document for every `MUSTERD_SECTION__KEY`, in the order of their names.

    Other variables that start with MUSTERD_ are none of the configuration's business.
    """
    for name in sorted(environ):
        section, separator, key = name.removeprefix(_PREFIX).partition("__")
        if name.startswith(_PREFIX) and separator:
            path = _path(section.lower(), key.lower(), "__")
            yield _document(f"env {name}", path, environ[name], folder)


def from_arguments(sets: Sequence[str], folder: Path) -> Iterator[Document | Fault]:
    """Gives a document for every `--set section.key=value`, or the fault of one that is not so."""
    for text in sets:
        found = _ASSIGNMENT.fullmatch(text)
        if found is None:
            said = text.partition("=")[0]  # what follows may be a secret
            yield Fault("--set", found=said or "nothing", wanted="section.key=value")
        else:
            path = _path(found[1].strip(), found[2].strip(), ".")
            yield _document("--set", path, found[3], folder)


def _path(section: str, rest: str, separator: str) -> tuple[str, ...]:
    """Tenants and schedules are tables within tables, and so are a few keys."""
    parts = rest.split(separator)
    inner = section in _NAMED or _is_table((section, parts[0]))
    return (section, *parts) if inner else (section, rest)


def _is_table(path: Sequence[str]) -> bool:
    key = keys().get(".".join(path))
    return key is not None and bool(key.metadata.get("is_table"))


def _document(source: str, path: tuple[str, ...], text: str, folder: Path) -> Document | Fault:
    if not text.isascii() and not _is_unicode(text):
        return Fault(source, key=".".join(path), found="text that is not UTF-8")
    data: object = _value(text, path)
    for name in reversed(path):
        data = {name: data}
    return Document(source, cast(Mapping[str, object], data), folder)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _value(text: str, path: tuple[str, ...]) -> object:
    """Reads `text` by the type of its key; what cannot be read stays text, and is refused later."""
    find = _NAMED.get(path[0], _attribute)
    known = find(path)
    if known is None:
        return text
    is_text = known.type is str or get_origin(known.type) is Literal
    value = _parsed(text.strip())
    return value if isinstance(value, str) or not is_text else text


def _attribute(path: Sequence[str]) -> "Key | None":
    """The key at `path`, which may be one of a table within a table."""
    section, name, *within = path
    key = keys().get(f"{section}.{name}")
    if key is None or not within:
        return key
    return attrs.fields_dict(cast("type[attrs.AttrsInstance]", key.type)).get(within[0])


def _parsed(text: str) -> object:
    try:
        table = tomli.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text
