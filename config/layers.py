"""The layers above the files: the environment and `--set`, each variable a document of its own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_origin

import tomli

from musterd.config.document import Document
from musterd.config.faults import Fault
from musterd.config.settings import keys

_PREFIX = "MUSTERD_"
_ASSIGNMENT = re.compile(r"([^=.]+)\.([^=]+)=(.*)", re.DOTALL)


def from_environment(environ: Mapping[str, str], folder: Path) -> Iterator[Document | Fault]:
    """Gives a document for every `MUSTERD_SECTION__KEY`, in the order of their names.

    Other variables that start with MUSTERD_ are none of the configuration's business.
    """
    for name in sorted(environ):
        section, separator, key = name.removeprefix(_PREFIX).partition("__")
        if name.startswith(_PREFIX) and separator:
            path = (section.lower(), key.lower())
            yield _document(f"env {name}", path, environ[name], folder)


def from_arguments(sets: Sequence[str], folder: Path) -> Iterator[Document | Fault]:
    """Gives a document for every `--set section.key=value`, or the fault of one that is not so."""
    for text in sets:
        found = _ASSIGNMENT.fullmatch(text)
        if found is None:
            said = text.partition("=")[0]  # what follows may be a secret
            yield Fault("--set", found=said or "nothing", wanted="section.key=value")
        else:
            yield _document("--set", (found[1].strip(), found[2].strip()), found[3], folder)


def _document(source: str, path: tuple[str, str], text: str, folder: Path) -> Document | Fault:
    section, name = path
    if not text.isascii() and not _is_unicode(text):
        return Fault(source, key=f"{section}.{name}", found="text that is not UTF-8")
    return Document(source, {section: {name: _value(text, ".".join(path))}}, folder)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _value(text: str, key: str) -> object:
    """Reads `text` by the type of `key`; what cannot be read stays text, and is refused later."""
    known = keys().get(key)
    if known is None:
        return text
    is_text = known.type is str or get_origin(known.type) is Literal
    value = _parsed(text.strip())
    return value if isinstance(value, str) or not is_text else text


def _parsed(text: str) -> object:
    try:
        table = tomli.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text
