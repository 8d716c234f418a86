"""The effective settings as a reader wants them: as a tree or as TOML, secrets masked."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

from musterd.config.load import Loaded
from musterd.config.settings import keys, sections
from musterd.config.toml_text import plain_number, toml_text


def as_tree(loaded: Loaded, origin: bool) -> dict[str, dict[str, object]]:
    """Gives the nested object of the TOML; with `origin`, each leaf is {"value", "origin"}."""
    tree: dict[str, dict[str, object]] = {section: {} for section in sections()}
    for section, name, value, source in _leaves(loaded):
        tree[section][name] = {"value": value, "origin": source} if origin else value
    return tree


def as_text(loaded: Loaded, origin: bool) -> str:
    """Gives valid TOML; with `origin`, each key is followed by a comment that says where from."""
    lines: list[str] = []
    header = ""
    for section, name, value, source in _leaves(loaded):
        if section != header:
            lines += ["", f"[{section}]"] if lines else [f"[{section}]"]
            header = section
        comment = f"  # {_one_line(source)}" if origin else ""
        lines.append(f"{name} = {toml_text(value)}{comment}")
    return "\n".join(lines) + "\n"


def _leaves(loaded: Loaded) -> Iterator[tuple[str, str, object, str]]:
    for key, attribute in keys().items():
        section, name = key.split(".")
        value = cast(object, getattr(getattr(loaded.settings, section), name))
        mask = cast(Callable[[str], str] | None, attribute.metadata.get("mask"))
        shown = mask(cast(str, value)) if mask else _plain(value)
        yield section, name, shown, loaded.origins[key]


def _plain(value: object) -> object:
    """Gives the value in JSON's types, numbers as they would be written by hand."""
    if isinstance(value, tuple):
        return [_plain(each) for each in cast(Sequence[object], value)]
    if isinstance(value, float):
        return plain_number(value)
    return str(value) if isinstance(value, Path) else value


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
